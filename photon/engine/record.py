"""What one step did and when: the unit of a trace. Plain values; who makes and who keeps them is not its business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Seconds on the device's clock, which is the host's too."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A committed step; a run's records come in the order of launch.

    ``number`` counts the run's steps, ``slot`` the working sets in order of their first use. ``rows`` are sequences,
    ``zombies`` those of them that had been finalized before this commit; the others got a token each. ``pictures``
    were encoded by a vision step, or had their prefix computed by a prefill.

    On the host: ``launch``, ``finalize`` (None where nothing is sampled), ``wait`` for the device, and ``commit``, the
    bookkeeping after it. On the device: ``uploads``, ``forward``, ``sample`` and ``copy``, the read-back. ``idle`` is
    how long the compute stream stood still before the forward, ``held`` how long between forward and sample.
    """

    number: int
    kind: str
    slot: int
    rows: int
    zombies: int
    pictures: int
    launch: Span
    finalize: Span | None
    wait: Span
    commit: Span
    uploads: tuple[Span, ...]
    forward: Span
    sample: Span | None
    copy: Span | None
    idle: float
    held: float

    @property
    def tokens(self) -> int:
        """Appended by the commit."""
        return self.rows - self.zombies

    @property
    def prefixes(self) -> int:
        """Computed by the forward."""
        return self.pictures if self.kind == "prefill" else 0

    @property
    def busy(self) -> float:
        """Seconds of the compute stream."""
        return self.forward.seconds + (self.sample.seconds if self.sample is not None else 0.0)


Listener = Callable[[StepRecord], None]
