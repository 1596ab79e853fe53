"""How fast a run was from start to end, from when its part files were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_STRETCHES = 60
_SLACK = 60.0  # seconds that the end may be late in a file server's eyes


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rows a second over equal stretches of ``seconds``, from the run's start to its last part: ``rows`` in all.
    ``others`` were written at other times, by earlier runs into the same output or by other shards."""

    seconds: float
    rates: tuple[float, ...]
    rows: int
    others: int


def throughput(written: Sequence[tuple[float, int]], started: float, wall: float | None) -> Throughput | None:
    """From the time and the rows of each part. ``wall`` is how long the run took, None while it is going on.

    None where no part was written in that time, as it is with copied files.
    """
    last = float("inf") if wall is None else started + wall + _SLACK
    ours = sorted((time, rows) for time, rows in written if started < time <= last)
    if not ours:
        return None
    ends = np.array([started, *(time for time, _ in ours)])
    total = np.cumsum([0, *(rows for _, rows in ours)])
    # Of parts that were written at one time, the last one's sum counts.
    kept = np.append(np.diff(ends) > 0, True)
    edges = np.linspace(started, ends[-1], min(_STRETCHES, len(ours)) + 1)
    seconds = float(ends[-1] - started)
    rates = np.diff(np.interp(edges, ends[kept], total[kept])) / (seconds / (len(edges) - 1))
    others = sum(rows for _, rows in written) - int(total[-1])
    return Throughput(seconds, tuple(float(rate) for rate in rates), int(total[-1]), others)
