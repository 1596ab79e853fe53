"""The rows of the chunks that are to be done, read in as few passes as can be, each with its place and what is known
of it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

from photon.data.row import Row, Source
from photon.job.recall import Known, Recall
from photon.plan.plan import Chunk, Plan


class PlannedRow(NamedTuple):
    """``place`` is the row's in the plan; ``row.index`` is where it is in the source now."""

    place: int
    row: Row
    known: Known | None = None


def planned_rows(source: Source, chunks: Sequence[Chunk], recall: Recall) -> Iterator[PlannedRow]:
    """The rows of ``chunks``, which are in ascending order."""
    for stretch in _stretches(chunks):
        rows = source.rows(sum(chunk.rows for chunk in stretch), start=stretch[0].index)
        for chunk in stretch:
            yield from _rows_of(chunk, rows, recall)


def endless_rows(
    source: Source, plan: Plan, first: int, done: Container[int], recall: Recall, limit: int | None
) -> Iterator[PlannedRow]:
    """Of a source that does not know its end, the rows of the chunks from number ``first`` on that are not ``done``."""
    start = plan.chunk(first).index
    rows = source.rows(None if limit is None else limit - start, start=start)
    for number in count(first):
        row = next(rows, None)
        if row is None:
            return
        chunk = plan.chunk(number)
        again = chain([row], rows)  # to delegate by a generator would close rows with it
        if number not in done:
            yield from _rows_of(chunk, again, recall)
        else:
            for _ in range(chunk.rows):
                next(again, None)


def _rows_of(chunk: Chunk, rows: Iterator[Row], recall: Recall) -> Iterator[PlannedRow]:
    known = recall.of(chunk.number)
    for place in range(chunk.place, chunk.place + chunk.rows):
        row = next(rows, None)
        if row is None:
            return
        yield PlannedRow(place, row, known.pop(row.ref, None) if known else None)


def _stretches(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    """Chunks that follow each other in the source: one pass over it reads them all."""
    start = 0
    for at in range(1, len(chunks) + 1):
        if at == len(chunks) or chunks[at].index != chunks[at - 1].index + chunks[at - 1].rows:
            yield chunks[start:at]
            start = at
