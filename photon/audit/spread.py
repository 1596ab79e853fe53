"""A sample of rows from all over an input, chosen so that little has to be read for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from photon.audit.positions import Positions
from photon.data.row import Row, Source
from photon.data.unit import Unit
from photon.plan.plan import Chunk, Plan

#: Neighbours that are read at each place: to get at one row, its group is opened and read up to there.
_TOGETHER = 12
#: Of a group with more bytes, the first rows are taken: the others would be read for nothing.
_HEAVY = 32 << 20


def spread_rows(source: Source, plan: Plan, count: int, gone: Collection[Unit] = ()) -> Iterator[Row]:
    """Rows of ``plan`` in order: ``count`` at most and, where there are so many and no large groups, half of that at
    least. Of an input that does not know its end, the first ones. None of units that are ``gone``."""
    if plan.is_endless:
        yield from source.rows(min(count, plan.spans[0].rows))
        return
    for start, rows in _stretches(plan, count, frozenset(gone)):
        yield from source.rows(rows, start=start)


def _stretches(plan: Plan, count: int, gone: Collection[Unit]) -> Iterator[tuple[int, int]]:
    """Each the index of a first row and how many there are."""
    positions, before = Positions(plan), -1
    for chunk, offset, most in _places(plan, count):
        index = chunk.index + offset
        unit, group, first = positions.find(index)
        if unit in gone:
            continue
        if unit.weights and unit.weights[group] > _HEAVY:
            index -= first
        if index > before:
            yield index, min(most, chunk.rows - offset)
        before = index


def _places(plan: Plan, count: int) -> Iterator[tuple[Chunk, int, int]]:
    """Where to read: a chunk, the row of it, and how many rows at most."""
    total = plan.rows or 0
    if total <= count:
        together = 1 if plan.reader == "folder" else total
        for chunk in map(plan.chunk, range(plan.chunks)):
            yield from ((chunk, offset, together) for offset in range(0, chunk.rows, together))
        return
    together = 1 if plan.reader == "folder" else min(_TOGETHER, total // plan.chunks)
    places = count // together
    for n in range(places):
        place = n * total // places
        chunk = plan.at(place)
        yield chunk, place - chunk.place, together
