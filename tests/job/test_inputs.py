"""Every kind of input through a whole job, one corrupt row among n: n rows out, which pyarrow and ``datasets`` open."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from photon.job.load import load_manifest
from photon.job.run import run
from tests.data.fake_hub import Hub, serve
from tests.data.pictures import digest, picture, pictures

COUNT, CORRUPT = 11, 6
PICTURES = pictures(COUNT, CORRUPT)
NAMES = [f"{n:03d}" for n in range(COUNT)]
TASKS = """
  - {name: things, type: detect, objects: [cat, dog]}
  - {name: spots, type: point, objects: ["{name}"]}
  - {name: cap, type: caption}"""
VALUES = {"things": "objects", "spots": "points", "cap": "text"}
KINDS = [
    *("parquet of bytes", "parquet of structs", "save_to_disk", "arrow file", "arrow stream"),
    *("loader imagefolder", "loader json", "loader parquet"),
]

Write = Callable[..., Path]


def table(first: int, last: int, kind: str = "structs") -> pa.Table:
    data = PICTURES[first:last]
    cells = data if kind == "bytes" else [{"bytes": cell, "path": f"{n}.png"} for n, cell in enumerate(data)]
    return pa.table({"image": cells, "name": NAMES[first:last]})


def write_parquets(kind: str) -> None:
    """Two files, the later one first in the alphabet; the corrupt row stands inside a row group."""
    for name, first, last in (("part-2", 0, 5), ("part-10", 5, COUNT)):
        pq.write_table(table(first, last, kind), f"{name}.parquet", row_group_size=4)


def make_input(kind: str) -> str:
    """Makes the input in the current folder; what the manifest says of it."""
    if kind.startswith("parquet"):
        write_parquets(kind.split()[-1])
        return "parquet: part-*.parquet"
    if kind.startswith("arrow"):
        rows = table(0, COUNT)
        with (pa.ipc.new_file if kind == "arrow file" else pa.ipc.new_stream)("rows.arrow", rows.schema) as writer:
            writer.write_table(rows, max_chunksize=4)
        return "arrow: rows.arrow"
    if kind == "save_to_disk":
        features = datasets.Features({"image": datasets.Image(), "name": datasets.Value("string")})
        datasets.Dataset.from_list(table(0, COUNT).to_pylist(), features).save_to_disk("saved", num_shards=2)
        return "arrow: saved"
    return make_loaded(kind.removeprefix("loader "))


def make_loaded(loader: str) -> str:
    """The same for what ``datasets`` loads."""
    if loader == "parquet":
        write_parquets("structs")
        # Left to itself, datasets takes files in the order of the alphabet.
        return "hub: parquet, options: {data_files: [part-2.parquet, part-10.parquet]}"
    Path("photos").mkdir()
    for name, data in zip(NAMES, PICTURES, strict=True):
        Path("photos", f"{name}.png").write_bytes(data)
    if loader == "json":
        lines = [{"image": f"photos/{name}.png", "name": name} for name in NAMES]
        Path("rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return "hub: json, options: {data_files: rows.jsonl}"
    lines = [{"file_name": f"{name}.png", "name": name} for name in NAMES]
    Path("photos/metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "hub: imagefolder, options: {data_dir: photos}"


def write_manifest(manifest_file: Write, source: str, ipc: str = "file") -> Path:
    return manifest_file(
        input=f"{{{source}, id: name, keep: [name]}}",
        tasks=TASKS,
        output=f"{{dir: {ipc}, chunk_rows: 4, ipc: {ipc}}}",
        errors="{max_failure_rate: 0.5}",
    )


def by_pyarrow(folder: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ds.dataset(f"{folder}/data", format="ipc").to_table().to_pylist()
    return rows


def by_load_dataset(folder: str) -> list[dict[str, Any]]:
    loaded = datasets.load_dataset("arrow", data_files=f"{folder}/data/*.arrow", split="train", cache_dir="cache")
    return list(loaded)


def by_from_file(folder: str) -> list[dict[str, Any]]:
    parts = [datasets.Dataset.from_file(str(part)) for part in sorted(Path(folder, "data").glob("*.arrow"))]
    return list(datasets.concatenate_datasets(parts))


def check(rows: list[dict[str, Any]]) -> None:
    """One row for each of the input, in plan order, of which the corrupt one alone failed."""
    assert [row["row_id"] for row in rows] == [row["name"] for row in rows] == NAMES
    for row, data in zip(rows, PICTURES, strict=True):
        answers = [row[task] for task in VALUES]
        values = [row[task][value] for task, value in VALUES.items()]
        if row["row_id"] == NAMES[CORRUPT]:
            assert (row["status"], row["error_code"], row["image"]) == ("failed", "IMAGE_UNIDENTIFIED", None)
            assert [answer["status"] for answer in answers] == ["skipped"] * 3
            assert values == [None] * 3
        else:
            assert (row["status"], row["error_code"], row["error_message"]) == ("ok", None, None)
            assert row["image"]["sha256"] == digest(data)
            assert (row["image"]["width"], row["image"]["height"]) == (3, 2)
            assert [answer["status"] for answer in answers] == ["ok"] * 3
            assert None not in values
    assert any(row["things"]["objects"] for row in rows), "or the comparison of values means little"


@pytest.mark.parametrize("kind", KINDS)
def test_one_corrupt_row_of_n_gives_n_rows_that_can_be_opened(kind: str, manifest_file: Write) -> None:
    source = make_input(kind)
    written = []
    for ipc in ("file", "stream"):
        summary = run(load_manifest(write_manifest(manifest_file, source, ipc)))
        assert (summary.rows, summary.failed, summary.parts, summary.exit_code) == (COUNT, 1, 3, 0)
        ours, theirs = (by_pyarrow if ipc == "file" else by_from_file)(ipc), by_load_dataset(ipc)
        assert ours == theirs
        check(ours)
        written.append([{**row, "job_id": None} for row in ours])
    assert written[0] == written[1]


def test_a_hub_id_with_split_and_revision(manifest_file: Write) -> None:
    """In a process of its own: huggingface_hub takes its endpoint at import."""
    other = pa.table({"image": [picture(0)], "name": ["from another split"]})
    splits = {"train-00000-of-00001": other, "test-00000-of-00002": table(0, 5), "test-00001-of-00002": table(5, COUNT)}
    files = {}
    for name, rows in splits.items():
        file = io.BytesIO()
        pq.write_table(rows, file, row_group_size=4)
        files[f"data/{name}.parquet"] = file.getvalue()
    path = write_manifest(manifest_file, "hub: org/photos, split: test, revision: v1")
    with serve(Hub({"org/photos": files})) as hub:
        here = {"HF_ENDPOINT": hub.url, "HF_HOME": "hf", "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, "-c", "from photon.cli import main; main()", "run", path, "--json", "--quiet"],
            env={**os.environ, **here},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == COUNT
    rows = by_pyarrow("file")
    check(rows)
    assert rows == by_load_dataset("file")
    assert rows[5]["source"]["file"] == f"hf://datasets/org/photos@{hub.sha}/data/test-00001-of-00002.parquet"
