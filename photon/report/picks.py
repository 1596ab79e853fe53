"""Which rows are shown: chosen in one pass over the output, in bounded memory, the same ones for the same seed.

Rows are drawn by a hash of their id, so that neither order nor chunk size decides; rows of the same id by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from photon.report.columns import Answers

_SAMPLE = 4096  # rows, of which the median is taken: within about 1.5 % of all rows of the true one, mostly
_ROW = np.dtype([("key", "f8"), ("hash", "u8"), ("position", "i8"), ("score", "f8")])

Rows = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Gallery:
    """``positions``, counted over all parts, in the order in which they are shown; ``slug`` names it in the page."""

    slug: str
    title: str
    told: str
    positions: tuple[int, ...]


class Least:
    """The ``most`` rows of the smallest keys, ties by hash."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: Rows = np.empty(0, _ROW)

    def offer(self, rows: Rows) -> None:
        if len(self.rows) == self._most and self._most:
            worst = self.rows[-1]
            tied = (rows["key"] == worst["key"]) & (rows["hash"] <= worst["hash"])
            rows = rows[(rows["key"] < worst["key"]) | tied]
        if len(rows):
            both = np.concatenate([self.rows, rows])
            order = np.lexsort((both["position"], both["hash"], both["key"]))
            self.rows = both[order[: self._most]]

    def positions(self) -> list[int]:
        return [int(position) for position in self.rows["position"]]


class Picks:
    """At most ``rows`` rows for each gallery; ``seed`` decides among those that are alike."""

    def __init__(self, rows: int, seed: int = 0) -> None:
        self._rows, self._seed = rows, seed
        self._start = 0
        self._best, self._lowest, self._most, self._cut = (Least(rows) for _ in range(4))
        self._failed: dict[str, Least] = {}
        self._sample = Least(max(rows, _SAMPLE))
        self._scored = Least(_SAMPLE)

    def offer(self, batch: pa.RecordBatch, answers: Iterable[Answers]) -> None:
        """Takes in the next batch, with the row's own columns, and what its tasks answered."""
        size = batch.num_rows
        counts, totals, cut = np.zeros(size, np.int64), np.zeros(size), np.zeros(size, bool)
        for told in answers:
            cut |= told.cut
            if told.found is not None:
                counts += np.bincount(told.found.rows, minlength=size)
                totals += np.bincount(told.found.rows, told.found.scores, minlength=size)
        rows = np.zeros(size, _ROW)
        rows["position"] = np.arange(self._start, self._start + size)
        rows["hash"] = _hashes(batch.column("row_id"), self._seed)
        rows["score"] = totals / np.maximum(counts, 1)
        self._start += size
        some = counts > 0
        self._sample.offer(rows)
        self._scored.offer(rows[some])
        self._best.offer(_keyed(rows[some], -rows["score"][some]))
        self._lowest.offer(_keyed(rows[some], rows["score"][some]))
        self._most.offer(_keyed(rows[some], -counts[some]))
        self._cut.offer(rows[cut])
        self._offer_failed(batch, rows)

    def _offer_failed(self, batch: pa.RecordBatch, rows: Rows) -> None:
        statuses = np.asarray(batch.column("status").to_pylist())
        where = np.flatnonzero(statuses != "ok")
        codes = np.asarray([code or "FAILED" for code in batch.column("error_code").take(where).to_pylist()])
        for code in dict.fromkeys(codes.tolist()):
            self._failed.setdefault(code, Least(self._rows)).offer(rows[where[codes == code]])

    def galleries(self) -> list[Gallery]:
        """In the order in which they are shown; one about scores is left out where no row has any."""
        by_score = "by the mean score of what was found in a row"
        chosen = [
            Gallery("best", "Best scores", f"The highest first, {by_score}.", tuple(self._best.positions())),
            Gallery("median", "Median scores", f"Around the middle, {by_score}.", self._median()),
            Gallery("lowest", "Lowest scores", f"The lowest first, {by_score}.", tuple(self._lowest.positions())),
            Gallery("most", "Most found", "Rows with the most objects and points.", tuple(self._most.positions())),
        ]
        shown = [gallery for gallery in chosen if gallery.positions]
        cut = "Answers that ended at their limit, or were stopped because they repeated themselves."
        failed = "Some of every error code; a picture is there if it could be read."
        sample = tuple(sorted(self._sample.positions()[: self._rows]))
        return [
            *shown,
            Gallery("cut", "Cut short or repeated", cut, tuple(self._cut.positions())),
            Gallery("failed", "Failed", failed, self._of_each_code()),
            Gallery("sample", "A sample of all rows", "Drawn by a hash of the row's id: neither good nor bad.", sample),
        ]

    def _median(self) -> tuple[int, ...]:
        scored = self._scored.rows
        if not len(scored):
            return ()
        off = np.abs(scored["score"] - np.median(scored["score"]))
        near = scored[np.lexsort((scored["hash"], off))[: self._rows]]
        ordered = near[np.lexsort((near["hash"], -near["score"]))]
        return tuple(int(position) for position in ordered["position"])

    def _of_each_code(self) -> tuple[int, ...]:
        """The first of each code, then the second of each, until there are enough; shown code by code."""
        ranked: Mapping[str, Sequence[int]] = {code: least.positions() for code, least in sorted(self._failed.items())}
        turns = chain.from_iterable(zip_longest(*ranked.values()))
        taken = set([position for position in turns if position is not None][: self._rows])
        return tuple(position for positions in ranked.values() for position in positions if position in taken)


def _keyed(rows: Rows, keys: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Rows:
    rows["key"] = keys  # rows is a copy of the caller's: it was taken by a mask
    return rows


def _hashes(ids: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    key = str(seed).encode()[:64]
    digests = (blake2b((row_id or "").encode(), digest_size=8, key=key).digest() for row_id in ids.to_pylist())
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
