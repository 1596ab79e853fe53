"""Small runs to export: a folder of pictures, and an output about them, written by the job's own writer."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageDraw

from photon.data.row import Row
from photon.data.schema import TaskColumn, result_schema
from photon.data.writer import PartWriter
from photon.images.decode import DecodePolicy, decode
from photon.manifest.load import load_manifest
from tests.evaluate.outputs import CAPTION, DETECT, KINDS, POINT, QUERY, answer, found

ALL = (DETECT, POINT, CAPTION, QUERY)
SIZE = (64, 32)  # powers of two: shares in 64ths and 32nds are exact in float32
#: A box of the picture as it is meant to be seen, in pixels; edges on JPEG's blocks.
RED = (8, 16, 24, 24)
INSIDE = (8 / 64, 16 / 32, 24 / 64, 24 / 32)
ORIENTATIONS = range(1, 9)
CHUNK = 3
Answers: TypeAlias = Mapping[str, Mapping[str, Any]]
Tasks: TypeAlias = Sequence[Mapping[str, Any]]
#: What a camera did to the picture, undone by the orientation of that number: of EXIF's own definition, row by row.
_STORED = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, -1),
}


def seen() -> Image.Image:
    """Black, with ``RED`` in red."""
    picture = Image.new("RGB", SIZE)
    x_min, y_min, x_max, y_max = RED
    ImageDraw.Draw(picture).rectangle((x_min, y_min, x_max - 1, y_max - 1), fill="red")
    return picture


def encoded(picture: Image.Image | None = None, orientation: int = 1, form: str = "JPEG") -> bytes:
    """``picture`` as a camera stores it that was held for ``orientation``."""
    stored = _STORED[orientation](np.asarray(picture or seen()))
    tag = Image.Exif()
    if orientation != 1:
        tag[0x0112] = orientation
    file = io.BytesIO()
    options = {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
    Image.fromarray(np.ascontiguousarray(stored)).save(file, form, exif=tag, **options)
    return file.getvalue()


def red_of(pixels: Any) -> tuple[int, int, int, int]:
    """Where an RGB picture is red: x_min, y_min, x_max, y_max, the last ones outside."""
    reds = np.asarray(pixels)[..., 0] > 128
    ys, xs = np.where(reds.any(1))[0], np.where(reds.any(0))[0]
    assert reds[ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1].all(), "one box"
    return int(xs[0]), int(ys[0]), int(xs[-1]) + 1, int(ys[-1]) + 1


def write_run(
    pictures: Mapping[str, bytes],
    answers: Answers | None = None,
    tasks: Tasks = (DETECT,),
    *,
    id: str | None = "file_name",
    exif: str = "apply",
) -> Path:
    """out/, a run over photos/, which holds ``pictures`` by name. ``answers``: by picture and task, a value or a whole
    answer cell; by default nothing is found and "no" is said. The pictures' folders are kept."""
    for name, data in pictures.items():
        Path("photos", name).parent.mkdir(parents=True, exist_ok=True)
        Path("photos", name).write_bytes(data)
    from photon.data.folder import FolderSource

    rows = FolderSource(["photos"], id=id, columns=["folder"]).rows()
    given = {f"photos/{name}": cells for name, cells in (answers or {}).items()}
    told = [(row, given.get(row.ref.file, {})) for row in rows]
    return _write_output(told, {"folder": "photos", "id": id, "keep": ["folder"]}, tasks, exif)


def write_parquet_run(pictures: Mapping[str, bytes]) -> Path:
    """As ``write_run``, over rows.parquet, which holds bytes, with names for ids; nothing was found."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from photon.data.parquet import ParquetSource

    pq.write_table(pa.table({"image": [*pictures.values()], "name": [*pictures]}), "rows.parquet")
    rows = ParquetSource(["rows.parquet"], image="image", id="name").rows()
    return _write_output([(row, {}) for row in rows], {"parquet": "rows.parquet", "id": "name"}, (DETECT,), "apply")


def _write_output(rows: Sequence[tuple[Row, Any]], input: Mapping[str, Any], tasks: Tasks, exif: str) -> Path:
    import pyarrow as pa

    policy = DecodePolicy(exif=exif)  # type: ignore[arg-type]
    cells = [_cells(row, answers, tasks, policy) for row, answers in rows]
    columns = [TaskColumn(task["name"], KINDS[task["type"]]) for task in tasks]  # type: ignore[arg-type]
    kept = [pa.field(name, pa.string()) for name in input.get("keep", ())]
    writer = PartWriter(Path("out/data"), result_schema(columns, kept))
    for number, start in enumerate(range(0, len(cells), CHUNK)):
        writer.write(number, cells[start : start + CHUNK])
    manifest = _manifest(input, tasks, exif)
    record = {"photon_batch": "0", "state": "finished", "job_id": "job", "model": {}, "manifest": manifest}
    Path("out/run.json").write_text(json.dumps(record), encoding="utf-8")
    return Path("out")


def _manifest(input: Mapping[str, Any], tasks: Tasks, exif: str) -> dict[str, Any]:
    text = {
        "version": 1,
        "input": input,
        "model": {"path": "photon://null"},
        "tasks": list(tasks),
        "image": {"exif": exif},
        "output": {"dir": "out", "chunk_rows": CHUNK},
    }
    Path("m.yaml").write_text(json.dumps(text), encoding="utf-8")
    return load_manifest(Path("m.yaml")).model_dump(mode="json")


def _cells(row: Row, answers: Mapping[str, Any], tasks: Tasks, policy: DecodePolicy) -> dict[str, Any]:
    given = {}
    for task in tasks:
        kind = KINDS[task["type"]]
        value = answers.get(task["name"], "no" if kind == "text" else [])
        given[task["name"]] = value if isinstance(value, dict) else answer(kind, value)
    bad = next((cell["error_code"] for cell in given.values() if cell["status"] != "ok"), None)
    assert row.image is not None
    return {
        "row_id": row.row_id,
        "status": "failed" if bad else "ok",
        "error_code": bad,
        "source": row.ref._asdict(),
        "image": decode(row.image.source, policy)[1]._asdict(),
        **row.columns,
        **given,
        "job_id": "job",
    }


def red_found(score: float = 0.5) -> dict[str, Any]:
    """The answer of a detect task that saw ``RED`` for what it is."""
    return {"things": [found("cat", INSIDE, score)]}
