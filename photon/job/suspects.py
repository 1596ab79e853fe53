"""Crash reports, and the rows suspected of the crashes: after two they are asked alone, after one alone no more."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from photon.data.disk import replace

FOLDER = "crash"
#: How many crashes make a row a suspect.
CRASHES = 2
_MOST_ROWS = 5000


@dataclass(frozen=True, slots=True)
class Suspects:
    """Rows by their places. ``alone`` are asked with nothing else in the engine, ``guilty`` not at all."""

    alone: Collection[int] = field(default_factory=frozenset)
    guilty: Collection[int] = field(default_factory=frozenset)

    @classmethod
    def read(cls, root: Path) -> Suspects:
        """From the reports in ``root``; one that cannot be read counts for nothing."""
        times: Counter[int] = Counter()
        by_itself: set[int] = set()
        folder = root / FOLDER
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            places = _places(path)
            times.update(set(places))
            if len(places) == 1:
                by_itself.update(places)
        suspected = {place for place, count in times.items() if count >= CRASHES}
        return cls(frozenset(suspected - by_itself), frozenset(suspected & by_itself))


def report_crash(
    root: Path, shard: str, error: BaseException, rows: Sequence[tuple[int, str]], facts: dict[str, Any]
) -> Path:
    """Writes down what is known: the error with its notes (stacks, for a stall) and the rows in flight, place and id.
    Raises ``OSError``."""
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.time_ns()}-{shard}-{os.getpid()}.json"
    report = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "shard": shard,
        "error": f"{type(error).__name__}: {error}",
        "notes": list(getattr(error, "__notes__", ())),
        "traceback": traceback.format_exception(error),
        "rows": [list(row) for row in rows[:_MOST_ROWS]],
        **facts,
    }
    replace(path, json.dumps(report, indent=1, default=str) + "\n")
    return path


def _places(path: Path) -> list[int]:
    try:
        return [int(place) for place, _ in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []
