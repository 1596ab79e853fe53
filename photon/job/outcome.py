"""What became of one row: the cells of its result row, and what the run counts of it."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from photon.core import Failure

#: One result row, as the writer takes it.
Cells: TypeAlias = dict[str, Any]


class Outcome(NamedTuple):
    """``place`` is the row's in the plan; ``found`` counts its objects and points, ``requests`` what was asked about it
    in this run; ``failure`` is the row's. ``odd_orientation``: of its picture."""

    place: int
    row_id: str
    cells: Cells
    found: int = 0
    requests: int = 0
    failure: Failure | None = None
    odd_orientation: bool = False
