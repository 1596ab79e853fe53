"""Row ids that come more than once, found in 8 bytes a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Ids that are told by name.
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Repeated:
    """``ids`` come more than once, on ``rows`` rows together; ``shown`` are some of them, with how often."""

    ids: int = 0
    rows: int = 0
    shown: tuple[tuple[str, int], ...] = ()


class IdDigests:
    """64-bit digests of row ids. Two ids of one digest are not to be expected below some hundred million rows."""

    def __init__(self, rows: int) -> None:
        """``rows``: about how many will come."""
        self._digests: np.ndarray[Any, np.dtype[np.int64]] = np.empty(max(rows, 16), np.int64)
        self._count = 0

    def add(self, ids: Sequence[str]) -> None:
        stop = self._count + len(ids)
        if stop > len(self._digests):
            self._digests = np.resize(self._digests, max(stop, 2 * len(self._digests)))
        self._digests[self._count : stop] = np.fromiter(map(hash, ids), np.int64, len(ids))
        self._count = stop

    def repeated(self, again: Iterable[Sequence[str]]) -> Repeated:
        """Sorts the digests in place. ``again``: all ids once more, looked at for names where some are repeated."""
        digests = self._digests[: self._count]
        digests.sort()
        same = digests[1:] == digests[:-1]
        if not same.any():
            return Repeated()
        first = same.copy()
        first[1:] &= ~same[:-1]
        found = digests[:-1][first]
        wanted = set(found[:SHOWN].tolist())
        times = Counter(name for ids in again for name in ids if hash(name) in wanted)
        shown = tuple(sorted((name, count) for name, count in times.items() if count > 1))
        return Repeated(len(found), int(same.sum()) + len(found), shown[:SHOWN])
