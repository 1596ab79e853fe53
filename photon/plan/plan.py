"""The plan: the frozen division of the input into chunks, which never changes; a grown input only adds to it.

Rows are counted twice. A row's *place* is its position in the plan: once given it stays, so that chunks, parts and
answers do. Its *index* is the position in the source as it is now, where a file that grew pushes the later ones back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from photon.data.unit import Unit

#: How the units are read: what ``sources.open_planned`` tells apart.
Reader: TypeAlias = Literal["parquet", "arrow", "folder", "webdataset", "stream"]
#: Rows of something that has no end we know of.
ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows [place, place + rows) of the plan, which are those from ``index`` on in the source. ``rows`` is an upper
    bound for a source that does not know its end."""

    number: int
    place: int
    index: int
    rows: int


@dataclass(frozen=True, slots=True)
class Span:
    """Rows [start, stop) of unit number ``unit``. For pictures in folders the units follow each other, and a span goes
    on into the next ones. No chunk crosses the end of a span."""

    unit: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class Plan:
    """``units`` in the order of their first appearance, as they were last seen. ``reading``: the manifest's words for
    the input, as they were last. ``generations`` counts how often rows were planned, the first time included."""

    job_id: str
    chunk_rows: int
    reader: Reader
    reading: dict[str, Any]
    units: list[Unit]
    spans: list[Span]
    generations: int = 1
    _first_chunks: list[int] = field(init=False, repr=False)
    _first_places: list[int] = field(init=False, repr=False)
    _first_indexes: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        chunks = [-(-span.rows // self.chunk_rows) for span in self.spans]
        self._first_chunks = [0, *accumulate(chunks)]
        self._first_places = [0, *accumulate(span.rows for span in self.spans)]
        self._first_indexes = [0, *accumulate(unit.rows or 0 for unit in self.units)]

    @property
    def is_endless(self) -> bool:
        """Whether only reading tells how many rows there are."""
        return self.reader == "stream"

    @property
    def chunks(self) -> int:
        """How many there are; for a source without a known end, more than there can be."""
        return self._first_chunks[-1]

    @property
    def rows(self) -> int | None:
        """None where only reading tells."""
        return None if self.is_endless else self._first_places[-1]

    def chunk(self, number: int) -> Chunk:
        """Raises ``IndexError`` for a number beyond the plan."""
        if not 0 <= number < self.chunks:
            raise IndexError(f"the plan has {self.chunks} chunks and no number {number}")
        which = bisect_right(self._first_chunks, number) - 1
        span = self.spans[which]
        start = (number - self._first_chunks[which]) * self.chunk_rows
        index = self._first_indexes[span.unit] + span.start + start
        return Chunk(number, self._first_places[which] + start, index, min(self.chunk_rows, span.rows - start))

    def start_of(self, number: int) -> int:
        """The place of the first row of chunk ``number``; for ``chunks``, where the last one ends."""
        which = bisect_right(self._first_chunks, number) - 1
        return self._first_places[which] + (number - self._first_chunks[which]) * self.chunk_rows

    def at(self, place: int) -> Chunk:
        """The chunk that holds the row at ``place``. Raises ``IndexError`` for one beyond the plan."""
        which = bisect_right(self._first_places, place) - 1
        if which >= len(self.spans):
            raise IndexError(f"the plan has {self._first_places[-1]} rows and none at {place}")
        return self.chunk(self._first_chunks[which] + (place - self._first_places[which]) // self.chunk_rows)

    def index_of(self, place: int) -> int:
        """Where the row at ``place`` is in the source now."""
        chunk = self.at(place)
        return chunk.index + place - chunk.place


def spans_of(units: Sequence[Unit], reader: Reader, limit: int | None) -> list[Span]:
    """All rows of ``units``, or the first ``limit``: a span for each file, one for all pictures of folders."""
    return list(_cut(_all_spans(units, reader), limit))


def _all_spans(units: Sequence[Unit], reader: Reader) -> Iterator[Span]:
    if reader == "folder":
        yield Span(0, 0, len(units))
        return
    for number, unit in enumerate(units):
        rows = ENDLESS if unit.rows is None else unit.rows
        if rows:
            yield Span(number, 0, rows)


def _cut(spans: Iterator[Span], limit: int | None) -> Iterator[Span]:
    left = ENDLESS if limit is None else limit
    for span in spans:
        if left <= 0:
            return
        yield Span(span.unit, span.start, min(span.stop, span.start + left))
        left -= span.rows
