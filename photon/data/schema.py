"""The columns of a result row, as an Arrow schema that also carries the features that ``datasets`` restores.

Coordinates and scores are float32; coordinates are normalised to the frame that ``image.frame`` records, in [0, 1].
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.types as pat

from photon.errors import UsageError

TaskKind = Literal["text", "objects", "points"]

SOURCE = pa.struct({"file": pa.string(), "row_group": pa.int64(), "row": pa.int64()})
_IMAGE = pa.struct(
    {
        "width": pa.int32(),
        "height": pa.int32(),
        "frame": pa.string(),
        "exif_orientation": pa.int32(),
        "mode": pa.string(),
        "n_frames": pa.int32(),
        "sha256": pa.string(),
        "icc_profile": pa.string(),
    }
)
_SCORES = {"score": pa.float32(), "score_exist": pa.float32(), "score_loc": pa.float32()}
_CORNERS = dict.fromkeys(("x_min", "y_min", "x_max", "y_max"), pa.float32())
_OBJECT = pa.struct({"label": pa.string(), **_CORNERS, **_SCORES, "clipped": pa.bool_()})
_POINT = pa.struct({"label": pa.string(), "x": pa.float32(), "y": pa.float32(), **_SCORES})
_VALUES: dict[TaskKind, pa.DataType] = {"text": pa.string(), "objects": pa.list_(_OBJECT), "points": pa.list_(_POINT)}

_HEAD = {
    "row_id": pa.string(),
    "status": pa.string(),
    "error_code": pa.string(),
    "error_message": pa.string(),
    "source": SOURCE,
    "image": _IMAGE,
}
_TAIL = {"job_id": pa.string()}


@dataclass(frozen=True, slots=True)
class TaskColumn:
    """One task's column. ``reasoning`` adds a text field for what the model wrote before its answer (text only)."""

    name: str
    kind: TaskKind
    reasoning: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _VALUES:
            raise ValueError(f"kind must be one of {', '.join(_VALUES)}, not {self.kind!r}")
        if self.reasoning and self.kind != "text":
            raise ValueError(f"reasoning goes with a text task, not with {self.kind}")

    @property
    def type(self) -> pa.DataType:
        """The struct: null value where the task failed or was skipped, an empty list where nothing was found."""
        fields = {
            "status": pa.string(),
            "error_code": pa.string(),
            "finish_reason": pa.string(),
            "n_tokens": pa.int32(),
            "truncated": pa.bool_(),
            "task_fp": pa.string(),
            self.kind: _VALUES[self.kind],
        }
        if self.reasoning:
            fields["reasoning"] = pa.string()
        return pa.struct(fields)


def result_schema(
    tasks: Sequence[TaskColumn], kept: Sequence[pa.Field], features: Mapping[str, object] | None = None
) -> pa.Schema:
    """The schema of a job's part files: our columns, the ``kept`` ones of the input, one per task, ``job_id``.

    ``features`` are the input's, as ``features_of`` its schema finds them: a kept ClassLabel stays one. Raises
    ``UsageError`` where two columns would have one name.
    """
    columns = dict(_HEAD)
    for field in kept:
        _add(columns, field.name, _plain(field.type), "kept column", "rename it in the input, or do not keep it")
    for task in tasks:
        _add(columns, task.name, task.type, "task", "rename the task")
    columns |= _TAIL
    theirs = {field.name for field in kept}
    described = {name: _feature(kind) for name, kind in columns.items() if name not in theirs}
    # A kept column without a feature of its own gets the one that datasets derives from its type.
    described |= {name: feature for name, feature in (features or {}).items() if name in theirs}
    ordered = {name: described[name] for name in columns if name in described}
    return pa.schema(list(columns.items()), metadata={"huggingface": json.dumps({"info": {"features": ordered}})})


def _add(columns: dict[str, pa.DataType], name: str, kind: pa.DataType, what: str, advice: str) -> None:
    if name in _HEAD or name in _TAIL:
        raise UsageError(f"{what} {name!r} has the name of a column of every result row: {advice}")
    if name in columns:
        raise UsageError(f"{what} {name!r} has the name of another kept column or task: {advice}")
    columns[name] = kind


def features_of(schema: pa.Schema) -> dict[str, object]:
    """The features that ``datasets`` left in a schema's metadata, by column, in their JSON form; empty if none."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return dict(features) if isinstance(features, dict) else {}


def _plain(kind: pa.DataType) -> pa.DataType:
    """Without encodings (each batch has its own dictionary, and an IPC file can hold but one) and without extensions,
    which need their package to be read."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pat.is_dictionary(kind) or pat.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if pat.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pat.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pat.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _feature(kind: pa.DataType) -> object:
    """One of our own types as ``datasets.Features.to_dict`` spells it."""
    if pat.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pat.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": {"float": "float32"}.get(str(kind), str(kind)), "_type": "Value"}
