"""What a batch of result rows holds of one task, by column: nothing here looks at a row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from photon.job.asked import TEXT_TYPES, AskedTask

_FIELDS = {"detect": "objects", "point": "points"}


@dataclass(frozen=True, slots=True)
class Found:
    """Objects or points: the row of each, counted in the batch, its label and its score."""

    rows: npt.NDArray[np.int64]
    labels: pa.Array
    scores: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answers:
    """One task in one batch. ``found`` is None for a text task, ``texts`` for the others."""

    statuses: pa.Array
    finishes: pa.Array
    truncated: npt.NDArray[np.bool_]
    tokens: int
    found: Found | None
    texts: pa.Array | None

    @property
    def cut(self) -> npt.NDArray[np.bool_]:
        """The rows whose answer ended too early, or began to repeat itself."""
        repeated: npt.NDArray[np.bool_] = _array(pc.fill_null(pc.equal(self.finishes, "repetition"), False), bool)
        return np.logical_or(self.truncated, repeated)


def answers_of(batch: pa.RecordBatch, task: AskedTask) -> Answers:
    """The answers of ``task`` in a batch that has its column."""
    cells = batch.column(task.name)
    return Answers(
        pc.struct_field(cells, "status"),
        pc.struct_field(cells, "finish_reason"),
        _array(pc.fill_null(pc.struct_field(cells, "truncated"), False), bool),
        pc.sum(pc.struct_field(cells, "n_tokens")).as_py() or 0,
        _found(cells, _FIELDS[task.type]) if task.type in _FIELDS else None,
        pc.struct_field(cells, "text") if task.type in TEXT_TYPES else None,
    )


def _found(cells: pa.StructArray, field: str) -> Found:
    lists = pc.struct_field(cells, field)
    found = pc.list_flatten(lists)
    rows = _array(pc.list_parent_indices(lists), np.int64)
    return Found(rows, pc.struct_field(found, "label"), _array(pc.struct_field(found, "score"), np.float64))


def _array(values: pa.Array, kind: Any) -> npt.NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(kind)
