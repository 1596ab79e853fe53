"""Small output folders for tests, written by the job's own writer, and truth in Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from photon.data.schema import TaskColumn, result_schema
from photon.data.writer import PartWriter

DETECT = {"name": "things", "type": "detect", "objects": ["cat", "dog"]}
POINT = {"name": "spots", "type": "point", "objects": ["cat"]}
QUERY = {"name": "count", "type": "query", "question": "How many cats?"}
CAPTION = {"name": "cap", "type": "caption", "length": "short"}
KINDS = {"detect": "objects", "point": "points", "query": "text", "caption": "text"}

BOX = pa.struct([("label", pa.string()), *((name, pa.float64()) for name in ("x_min", "y_min", "x_max", "y_max"))])
TRUTH = pa.struct([("things", pa.list_(BOX)), ("spots", pa.list_(BOX)), ("count", pa.string())])
IMAGE = {"width": 200, "height": 100, "frame": "oriented", "exif_orientation": 1, "mode": "RGB", "n_frames": 1}

Corners = tuple[float, float, float, float]


def found(label: str, corners: Corners, score: float) -> dict[str, Any]:
    """A box as a result row holds it."""
    scores = {"score": score, "score_exist": score, "score_loc": 1.0}
    return {**true(label, corners), **scores, "clipped": False}


def spot(label: str, x: float, y: float, score: float) -> dict[str, Any]:
    return {"label": label, "x": x, "y": y, "score": score, "score_exist": score, "score_loc": 1.0}


def true(label: str, corners: Corners) -> dict[str, Any]:
    return {"label": label, **dict(zip(("x_min", "y_min", "x_max", "y_max"), corners, strict=True))}


def answer(kind: str, value: Any) -> dict[str, Any]:
    """An answer that came; ``failed`` for one that did not."""
    return {"status": "ok", "finish_reason": "stop", "n_tokens": 3, "truncated": False, kind: value}


def failed(code: str = "IMAGE_TRUNCATED") -> dict[str, Any]:
    return {"status": "failed", "error_code": code}


def write_output(
    root: Path,
    tasks: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    kept: Mapping[str, pa.DataType] | None = None,
    *,
    features: Mapping[str, object] | None = None,
    ipc: str = "file",
    input: Mapping[str, Any] | None = None,
    state: str = "finished",
    chunk: int = 3,
) -> Path:
    """``rows`` hold, by task, a value (or a whole answer cell) and the kept columns; what is missing is filled in."""
    kinds = {task["name"]: KINDS[task["type"]] for task in tasks}
    columns = [TaskColumn(name, kind) for name, kind in kinds.items()]  # type: ignore[arg-type]
    fields = [pa.field(name, kind) for name, kind in (kept or {}).items()]
    writer = PartWriter(root / "data", result_schema(columns, fields, features), ipc=ipc)  # type: ignore[arg-type]
    cells = [_cells(n, row, kinds) for n, row in enumerate(rows)]
    for number, start in enumerate(range(0, len(cells), chunk)):
        writer.write(number, cells[start : start + chunk])
    manifest = {"input": {"parquet": ["in.parquet"], "id": None, **(input or {})}, "tasks": list(tasks)}
    record = {"photon_batch": "0", "state": state, "model": {}, "manifest": manifest}
    (root / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return root


def _cells(number: int, row: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    answers = {
        name: row[name]
        if isinstance(row.get(name), dict)
        else answer(kind, row.get(name, [] if kind != "text" else ""))
        for name, kind in kinds.items()
    }
    bad = any(cell["status"] != "ok" for cell in answers.values())
    return {
        "row_id": f"row{number}",
        "status": "failed" if bad else "ok",
        "source": {"file": "in.parquet", "row_group": 0, "row": number},
        "image": IMAGE,
        **{name: cell for name, cell in row.items() if name not in kinds},
        **answers,
    }


def write_truth(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path
