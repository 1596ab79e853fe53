"""Rows as the run wrote them, in one JSON Lines or Parquet file, with pixels beside the shares of width and height.

``x_min_px`` and the like are in the frame that the row's ``image`` names. Boxes without area stay.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.schema import features_of
from photon.errors import UsageError
from photon.export.frame import View
from photon.export.plan import KINDS, Plan, kept_marks
from photon.export.rows import ExportRow
from photon.export.table import Table, with_features

_GROUP_ROWS = 5000
_SPLIT = "split"
_CORNERS = ("x_min", "y_min", "x_max", "y_max")
_PIXELS = {"objects": tuple(f"{name}_px" for name in _CORNERS), "points": ("x_px", "y_px")}


class JsonLines:
    """Bytes become base64; numbers that JSON lacks (NaN, infinity) null."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self._plan, self._columns = plan, _columns(plan)
        self._file = path.open("w", encoding="utf-8")

    def add(self, row: ExportRow) -> None:
        cells = _finite(flat_row(row, self._plan, self._columns))
        self._file.write(json.dumps(cells, ensure_ascii=False, allow_nan=False, default=_plain) + "\n")

    def close(self) -> None:
        self._file.close()


class Parquet:
    def __init__(self, path: Path, plan: Plan) -> None:
        self._plan, self._columns = plan, _columns(plan)
        schema = plan.output.schema
        ours = {_SPLIT: pa.field(_SPLIT, pa.string())} if plan.parts else {}  # else one of the run's
        fields = [ours.get(name) or _with_pixels(schema.field(name), plan) for name in self._columns]
        features = {name: value for name, value in features_of(schema).items() if name in plan.output.kept}
        self._table = Table(path, with_features(pa.schema(fields), features), _GROUP_ROWS)

    def add(self, row: ExportRow) -> None:
        self._table.add(flat_row(row, self._plan, self._columns))

    def close(self) -> None:
        self._table.close()


def flat_row(row: ExportRow, plan: Plan, columns: tuple[str, ...]) -> dict[str, Any]:
    """The cells of ``columns``, turned into the row's view and filtered as the options say."""
    cells = {name: row.part if name == _SPLIT and plan.parts else row.cells[name] for name in columns}
    view = row.view
    cells["image"] = {**row.cells["image"], "width": view.width, "height": view.height, "frame": view.frame}
    for task in plan.tasks:
        kind = KINDS[task.type]
        if kind != "text":
            answer = row.cells[task.name]
            marks = kept_marks(answer, kind, plan.options)
            cells[task.name] = {**answer, kind: [_in_view(found, view) for found in marks]}
    return cells


def _columns(plan: Plan) -> tuple[str, ...]:
    output = plan.output
    if plan.parts and _SPLIT in (*output.kept, *(task.name for task in plan.tasks)):
        raise UsageError("the run has a column split of its own; export without --split")
    head = ("row_id", _SPLIT) if plan.parts else ("row_id",)
    return (*head, "source", "image", *output.kept, *(task.name for task in plan.tasks), "job_id")


def _in_view(found: Mapping[str, Any], view: View) -> dict[str, Any]:
    if "x_min" in found:
        a, b, c, d = (found[name] for name in _CORNERS)
        corners = view.corners((a, b, c, d))
        places = dict(zip(_CORNERS, corners, strict=True))
        pixels = zip(_PIXELS["objects"], view.xyxy_px(corners), strict=True)
    else:
        x, y = view.point(found["x"], found["y"])
        places = {"x": x, "y": y}
        pixels = zip(_PIXELS["points"], view.xy_px(x, y), strict=True)
    return {**found, **places, **dict(pixels)}


def _with_pixels(field: pa.Field, plan: Plan) -> pa.Field:
    """A task's column with room for pixels, any other as it is."""
    kind = next((KINDS[task.type] for task in plan.tasks if task.name == field.name), "text")
    if kind == "text":
        return field
    cells = []
    for part in field.type:
        if part.name == kind:
            more = [pa.field(name, pa.float64()) for name in _PIXELS[kind]]
            part = part.with_type(pa.list_(pa.struct([*part.type.value_type, *more])))
        cells.append(part)
    return field.with_type(pa.struct(cells))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(cell) for key, cell in value.items()}
    if isinstance(value, list):
        return [_finite(cell) for cell in value]
    return value


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
