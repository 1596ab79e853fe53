"""What became of one row: the cells of its result row, and what the run counts of it."""

from __future__ import annotations

from dataclasses import dataclass

from photon.core import Failure
from photon.job.chunks import Cells


@dataclass(frozen=True, slots=True)
class Outcome:
    """``index`` is the row's place in the plan; ``found`` counts its objects and points; ``failure`` is the row's."""

    index: int
    row_id: str
    cells: Cells
    found: int = 0
    failure: Failure | None = None
