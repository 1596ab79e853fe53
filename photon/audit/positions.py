"""Where the rows of a chunk stand in the input, by the plan alone: what their ``source`` cells have to say."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from photon.data.folder import shown_name
from photon.data.unit import Unit
from photon.plan.plan import Chunk, Plan


@dataclass(frozen=True, slots=True)
class Stretch:
    """``rows`` rows of one group, from number ``first`` on."""

    file: str
    group: int
    first: int
    rows: int


class Positions:
    """Of the rows of ``plan``."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._starts = array("q", accumulate((unit.rows or 0 for unit in plan.units), initial=0))
        self._unit, self._groups = -1, [0]  # where each group of one unit starts: chunks come in order

    def of(self, chunk: Chunk, rows: int) -> Iterator[Stretch]:
        """The stretches that the first ``rows`` rows of ``chunk`` are made of."""
        if self._plan.is_endless:
            yield Stretch(self._plan.units[0].name, 0, chunk.index, rows)
            return
        index, stop = chunk.index, chunk.index + rows
        while index < stop:
            unit, group, first = self.find(index)
            count = min(stop - index, (unit.groups or ())[group] - first)
            yield Stretch(_file(unit), group, first, count)
            index += count

    def find(self, index: int) -> tuple[Unit, int, int]:
        """Where the row is that has this ``index`` in the source: its unit, the group and its number in there."""
        number = bisect_right(self._starts, index) - 1
        groups = self._groups_of(number)
        offset = index - self._starts[number]
        group = bisect_right(groups, offset) - 1
        return self._plan.units[number], group, offset - groups[group]

    def _groups_of(self, number: int) -> list[int]:
        if number != self._unit:
            self._unit = number
            self._groups = list(accumulate(self._plan.units[number].groups or (), initial=0))
        return self._groups


def _file(unit: Unit) -> str:
    return shown_name(os.path.join(unit.root, unit.name)) if unit.root else unit.name
