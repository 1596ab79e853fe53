"""A folder that is a data set of ``datasets``: Parquet in data/, a card in README.md. Ready to push; nothing is pushed.

Boxes are ``objects``: bbox in pixels as COCO's, category as a ClassLabel; points and texts stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.schema import TaskKind, features_of
from photon.errors import UsageError
from photon.export.card import card
from photon.export.names import safe_name
from photon.export.plan import Plan
from photon.export.rows import ExportRow, FoundBox, FoundPoint
from photon.export.table import Table, with_features

WHOLE = "train"  # the split of a data set without splits, by the hub's custom
_FILE_BYTES = 400 << 20
_GROUP_ROWS = {True: 100, False: 1000}  # with pictures and without
_INPUT = "input_"  # before the name of a column of the input that one of ours has
_PLACES: dict[TaskKind, tuple[str, int]] = {"objects": ("bbox", 4), "points": ("point", 2)}


class HuggingFace:
    """``close`` writes the card, which tells the counts."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self._root, self._plan = root, plan
        self._schema, self._kept = _schema(plan)
        (root / "data").mkdir()
        self._files = {part: _Files(root / "data", part, self._schema) for part in plan.parts or (WHOLE,)}

    def add(self, row: ExportRow) -> None:
        plan, view = self._plan, row.view
        cells: dict[str, Any] = {"file_name": row.name, "row_id": row.row_id}
        if row.picture is not None:
            if plan.images == "link":
                cells["image"] = {"bytes": None, "path": row.picture.link}
            else:
                cells["image"] = {"bytes": row.picture.data, "path": row.picture.named(safe_name(row.name))}
        cells |= {"width": view.width, "height": view.height}
        if plan.of_kind("objects"):
            cells["objects"] = _lists("objects", [(view.xywh_px(found.corners), found) for found in row.boxes])
        if plan.of_kind("points"):
            cells["points"] = _lists("points", [(view.xy_px(found.x, found.y), found) for found in row.points])
        cells |= row.texts
        cells |= {ours: row.cells[name] for name, ours in self._kept.items()}
        weight = len(row.picture.data) if plan.images == "copy" and row.picture else 0
        self._files[row.part or WHOLE].add(cells, weight)

    def close(self) -> None:
        counts = {part: files.close() for part, files in self._files.items()}
        (self._root / "README.md").write_text(card(self._plan, counts), encoding="utf-8")


class _Files:
    """The Parquet files of one split."""

    def __init__(self, folder: Path, part: str, schema: pa.Schema) -> None:
        self._folder, self._part, self._schema = folder, part, schema
        self._rows = self._number = 0
        self._group_rows = _GROUP_ROWS["image" in schema.names]
        self._table = self._open()

    def add(self, cells: Mapping[str, Any], weight: int) -> None:
        if self._table.bytes >= _FILE_BYTES:
            self._table.close()
            self._number += 1
            self._table = self._open()
        self._table.add(cells, weight)
        self._rows += 1

    def close(self) -> int:
        """The rows of the split."""
        self._table.close()
        return self._rows

    def _open(self) -> Table:
        return Table(self._folder / f"{self._part}-{self._number:05d}.parquet", self._schema, self._group_rows)


def _schema(plan: Plan) -> tuple[pa.Schema, dict[str, str]]:
    """And the kept columns, each with its name in the data set."""
    kinds: dict[str, pa.DataType] = {}
    features: dict[str, object] = {}
    if plan.images != "none":
        kinds["image"] = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        features["image"] = {"_type": "Image"}
    kinds |= {"file_name": pa.string(), "row_id": pa.string(), "width": pa.int32(), "height": pa.int32()}
    for kind, (place, length) in _PLACES.items():
        if plan.of_kind(kind):
            kinds[kind], features[kind] = _marks(place, length, plan.classes(kind))
    for task in plan.of_kind("text"):
        if task.name in kinds:
            raise UsageError(f"the data set has a column {task.name} of its own; leave the task out with --task")
        kinds[task.name] = pa.string()
    schema, known = plan.output.schema, features_of(plan.output.schema)
    kept = {name: f"{_INPUT}{name}" if name in kinds else name for name in plan.output.kept}
    for name, ours in kept.items():
        if ours in kinds:
            raise UsageError(f"the run kept {name} and {ours}, and both would be {ours}; export as parquet")
        kinds[ours] = schema.field(name).type
        if name in known:
            features[ours] = known[name]
    return with_features(pa.schema(list(kinds.items())), features), kept


def _marks(place: str, length: int, classes: tuple[str, ...]) -> tuple[pa.DataType, object]:
    number, text = {"dtype": "float64", "_type": "Value"}, {"dtype": "string", "_type": "Value"}
    kind = {
        place: pa.list_(pa.list_(pa.float64(), length)),
        "category": pa.list_(pa.int64()),
        "score": pa.list_(pa.float32()),
        "task": pa.list_(pa.string()),
    }
    inner: dict[str, object] = {
        place: {"feature": number, "length": length, "_type": "List"},
        "category": {"names": list(classes), "_type": "ClassLabel"},
        "score": {"dtype": "float32", "_type": "Value"},
        "task": text,
    }
    return pa.struct(kind), {name: {"feature": feature, "_type": "List"} for name, feature in inner.items()}


def _lists(kind: TaskKind, marks: list[tuple[tuple[float, ...], FoundBox | FoundPoint]]) -> dict[str, list[Any]]:
    return {
        _PLACES[kind][0]: [list(place) for place, _ in marks],
        "category": [found.number for _, found in marks],
        "score": [found.score for _, found in marks],
        "task": [found.task for _, found in marks],
    }
