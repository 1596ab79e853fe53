"""Every kind of input through a whole job, one corrupt row among n: n rows out, which pyarrow and ``datasets`` open."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from photon.errors import UsageError
from photon.job.run import run
from photon.job.sources import open_source
from photon.manifest.load import load_manifest
from tests.data.fake_hub import Hub, serve
from tests.data.fake_web import Web, serve_web
from tests.data.pictures import digest, picture, pictures
from tests.data.tars import write_tar
from tests.program import COMMAND

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
    *("folder", "webdataset"),
    *("loader imagefolder", "loader json", "loader parquet"),
]

#: The column of names, where it cannot be called "name".
COLUMNS = {"folder": "file_name", "webdataset": "txt"}

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
    if kind == "webdataset":
        for shard, first, last in (("s-2", 0, 5), ("s-10", 5, COUNT)):
            named = zip(NAMES[first:last], PICTURES[first:last], strict=True)
            pairs = ([(f"{name}.txt", name.encode()), (f"{name}.png", data)] for name, data in named)
            parts = [member for pair in pairs for member in pair]
            write_tar(Path(f"{shard}.tar"), parts)
        return "webdataset: s-*.tar"
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
    if loader == "folder":
        return "folder: photos"
    if loader == "json":
        lines = [{"image": f"photos/{name}.png", "name": name} for name in NAMES]
        Path("rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return "hub: json, options: {data_files: rows.jsonl}"
    lines = [{"file_name": f"{name}.png", "name": name} for name in NAMES]
    Path("photos/metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "hub: imagefolder, options: {data_dir: photos}"


def write_manifest(manifest_file: Write, source: str, ipc: str = "file", column: str = "name") -> Path:
    return manifest_file(
        input=f"{{{source}, id: {column}, keep: [{column}]}}",
        tasks=TASKS.replace("{name}", f"{{{column}}}"),
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


def check(rows: list[dict[str, Any]], column: str = "name") -> None:
    """One row for each of the input, in plan order, of which the corrupt one alone failed."""
    names = [f"{name}.png" for name in NAMES] if column == "file_name" else NAMES
    assert [row["row_id"] for row in rows] == [row[column] for row in rows] == names
    for row, data in zip(rows, PICTURES, strict=True):
        answers = [row[task] for task in VALUES]
        values = [row[task][value] for task, value in VALUES.items()]
        if row["row_id"] == names[CORRUPT]:
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
    source, column = make_input(kind), COLUMNS.get(kind, "name")
    written = []
    for ipc in ("file", "stream"):
        summary = run(load_manifest(write_manifest(manifest_file, source, ipc, column)))
        assert (summary.rows, summary.failed, summary.exit_code) == (COUNT, 1, 0)
        ours, theirs = (by_pyarrow if ipc == "file" else by_from_file)(ipc), by_load_dataset(ipc)
        assert ours == theirs
        check(ours, column)
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
            [*COMMAND, "run", path, "--json", "--quiet"],
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


def test_a_cell_that_cannot_be_read_costs_its_row(manifest_file: Write) -> None:
    text = pa.array([b"a", b"\xff", b"c"], pa.binary()).view(pa.string())
    pq.write_table(table(0, 3).append_column("text", text), "rows.parquet")
    path = manifest_file(
        input="{parquet: rows.parquet, id: name, keep: [text]}",
        tasks="""
  - {name: ask, type: query, question: "Is it {text}?"}
  - {name: cap, type: caption}
  - {name: things, type: detect, objects: [cat]}""",
        errors="{max_failure_rate: 0.5}",
    )
    summary = run(load_manifest(path))
    assert (summary.rows, summary.failed, summary.exit_code) == (3, 1, 0)
    rows = by_pyarrow("out")
    assert [row["text"] for row in rows] == ["a", None, "c"]
    assert [row["error_code"] for row in rows] == [None, "CELL_UNREADABLE", None]
    assert rows[1]["error_message"].startswith("column 'text' cannot be read")
    assert [rows[1][task]["status"] for task in ("cap", "things", "ask")] == ["skipped"] * 3, "not PROMPT_NULL"
    assert [row["cap"]["text"] is None for row in rows] == [False, True, False]
    assert [row["things"]["objects"] is None for row in rows] == [False, True, False]


@pytest.mark.parametrize("fetch", [True, False])
def test_urls_are_fetched_if_the_manifest_says_so(
    fetch: bool, manifest_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    pages = {f"/{name}.png": data for name, data in zip(NAMES[:-1], PICTURES[:-1], strict=True)}
    first = {"/002.png": [(503, {"Retry-After": "0"})], "/003.png": [(404, {})]}
    with serve_web(Web(pages, first)) as web:
        cells = pa.table({"image": [f"{web.url}/{name}.png" for name in NAMES], "name": NAMES})
        pq.write_table(cells, "rows.parquet")
        urls = f"{{fetch: {str(fetch).lower()}, retries: 1, parallel: 3}}"
        path = manifest_file(
            input=f"{{parquet: rows.parquet, id: name, urls: {urls}}}",
            tasks="[{name: cap, type: caption}]",
            errors="{max_failure_rate: 1}",
        )
        summary = run(load_manifest(path))
    rows = by_pyarrow("out")
    assert [row["row_id"] for row in rows] == NAMES
    found = [row["error_code"] or row["image"]["sha256"] for row in rows]
    if fetch:
        codes = {3: "IMAGE_MISSING", CORRUPT: "IMAGE_UNIDENTIFIED", COUNT - 1: "IMAGE_MISSING"}
        assert found == [codes.get(n) or digest(data) for n, data in enumerate(PICTURES)]
        assert {row["cap"]["status"] for row in rows if row["error_code"]} == {"skipped"}
        assert summary.failed == 3
    else:
        assert (found, web.asked) == (["IMAGE_MISSING"] * COUNT, [])
        assert "write input.urls: {fetch: true}" in rows[0]["error_message"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{folder: photo}", "2: input.folder.0: there is no photo; relative paths start from"),
        ("{folder: photos, image: file_name}", "2: input.image: column 'file_name' of a folder holds no pictures"),
        ("{folder: photos, id: name}", "2: input.id: the input has no column name; "),
        ("{folder: out/in}", "2: input.folder: out/in lies in output.dir, out, which is for results alone"),
        ("{folder: .}", "2: input.folder: . is searched for input, and output.dir, out, lies in it"),
        ("{folder: photos, split: train}", "2: input.split: goes with hub, not with folder; leave it out"),
        ("{folder: photos, webdataset: a.tar}", "input.webdataset: folder and webdataset are given; keep one of them"),
        ("{folder: []}", "2: input.folder: is empty; name the data, for example photos"),
        ("{webdataset: '*.tar'}", "2: input.webdataset.0: no file matches *.tar"),
        ("{webdataset: a.tgz}", "2: input.webdataset: a.tgz is compressed"),
        ("{webdataset: a.tar, keep: [json.n]}", "2: input.keep.0: the input has no column json.n; did you mean json?"),
        ("{parquet: 'hf://datasets/a/b/c.parquet'}", "write hf://datasets/a/b@REVISION/c.parquet with a commit sha"),
        ("{folder: photos, urls: {fetch: yes}}", "2: input.urls.fetch: 'yes' does not fit; write true or false"),
        ("{folder: photos, urls: {retry: 3}}", "2: input.urls.retry: unknown key; did you mean retries?"),
        ("{folder: photos, urls: {parallel: 0}}", "2: input.urls.parallel: 0 does not fit; write an integer from 1 to"),
        (
            "{folder: photos, urls: true}",
            "2: input.urls: true does not fit; write a mapping, for example {fetch: true}",
        ),
    ],
)
def test_wrong_inputs_are_told_with_their_line(source: str, message: str, manifest_file: Write) -> None:
    for folder in ("photos", "out/in"):
        Path(folder).mkdir(parents=True)
        Path(folder, "a.png").write_bytes(picture(0))
    write_tar(Path("a.tgz"), [("a.png", picture(0))], "w:gz")
    if "json.n" in source:
        write_tar(Path("a.tar"), [("a.png", picture(0)), ("a.json", b"{}")])
    path = manifest_file(input=source, tasks="[{name: cap, type: caption}]")
    with pytest.raises(UsageError) as caught:
        open_source(load_manifest(path))
    assert message in str(caught.value)
