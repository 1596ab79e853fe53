"""Merge: the rows as the run wrote them, in order, in files that the consumers open; whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from photon.cli import app
from photon.data.schema import features_of
from photon.data.writer import FACTS
from photon.errors import EngineError, InputError, OutputError, UsageError
from photon.export import merge as module
from photon.export.merge import merge
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.owner import OwnerRecord
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat]}, {name: cap, type: caption}]"
OUT, MADE = Path("out"), Path("made")


def go(path: Path, **how: Any) -> None:
    run(load_manifest(path), engine=how.pop("engine", None) or ShufflingEngine(), **how)


@pytest.fixture
def job(manifest_file: Write) -> Path:
    """A manifest of 14 rows in chunks of four, which keeps a column of classes. Row 5 fails."""
    from datasets import ClassLabel, Dataset, Features, Value

    features = Features({"image": Value("binary"), "name": Value("string"), "kind": ClassLabel(names=["day", "night"])})
    rows = {
        "image": [None if n == 5 else png() for n in range(14)],
        "name": [f"row{n}" for n in range(14)],
        "kind": [n % 2 for n in range(14)],
    }
    Dataset.from_dict(rows, features).to_parquet("rows.parquet")
    return manifest_file(
        tasks=TASKS, input="{parquet: rows.parquet, id: name, keep: [kind]}", errors="{max_failure_rate: 1}"
    )


def parts() -> pa.Table:
    return pa.concat_tables(pa.ipc.open_file(path).read_all() for path in sorted(Path("out/data").iterdir()))


def merged(form: str) -> pa.Table:
    return ds.dataset(sorted(MADE.iterdir()), format="ipc" if form == "arrow" else form).to_table()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rows_and_features_stay(job: Path, form: str) -> None:
    from datasets import Features, load_dataset

    go(job)
    made = merge(OUT, MADE, form)
    assert (made.rows, made.files, made.left) == (14, (f"part-00000.{form}",), None)
    assert made.bytes == sum(path.stat().st_size for path in MADE.iterdir())
    assert merged(form).to_pylist() == parts().to_pylist()
    assert merged(form)["row_id"].to_pylist() == [f"row{n}" for n in range(14)]
    schema = pq.read_schema(MADE / made.files[0]) if form == "parquet" else merged(form).schema
    assert schema.equals(parts().schema, check_metadata=False)
    assert features_of(schema) == features_of(parts().schema)
    assert FACTS not in schema.metadata, "a part's own facts are not those of the whole"
    opened = load_dataset(form, data_files=f"{MADE}/*.{form}", split="train", cache_dir="cache")
    assert opened.features["kind"].names == ["day", "night"]
    assert opened.features["things"] == Features.from_dict(features_of(schema))["things"]
    assert opened[5]["things"]["objects"] is None, "failed, and not empty"
    assert opened[0]["things"]["objects"] == parts().slice(0, 1).to_pylist()[0]["things"]["objects"]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rows_per_file(job: Path, form: str) -> None:
    go(job)
    made = merge(OUT, MADE, form, rows_per_file=6)
    assert made.files == tuple(f"part-0000{n}.{form}" for n in range(3))
    sizes = [ds.dataset(MADE / name, format="ipc" if form == "arrow" else form).count_rows() for name in made.files]
    assert sizes == [6, 6, 2]
    assert merged(form).to_pylist() == parts().to_pylist()


def test_a_file_is_full_by_its_bytes(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(job)
    monkeypatch.setattr(module, "_GROUP_ROWS", 3)
    merge(OUT, MADE)
    (whole,) = MADE.iterdir()
    groups = [pq.ParquetFile(whole).metadata.row_group(n).num_rows for n in range(5)]
    assert groups == [3, 3, 3, 3, 2], "a group holds so many at most, whatever the parts have"
    first = pq.ParquetFile(whole).metadata.row_group(0)
    size = sum(first.column(n).total_compressed_size for n in range(first.num_columns))
    monkeypatch.setattr(module, "FILE_BYTES", round(1.5 * size))
    made = merge(OUT, Path("again"))
    sizes = [pq.ParquetFile(Path("again") / name).metadata.num_rows for name in made.files]
    assert sizes == [6, 6, 2], "two groups are more than one and a half"
    rows = pa.concat_tables(pq.read_table(Path("again") / name) for name in made.files).to_pylist()
    assert rows == parts().to_pylist()


def test_groups_are_bounded_by_bytes(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(job)
    monkeypatch.setattr(module, "_GROUP_BYTES", 1)
    merge(OUT, MADE)
    (whole,) = MADE.iterdir()
    assert pq.ParquetFile(whole).metadata.num_row_groups == 4, "one for each part: none is held back"


def test_only_a_finished_job_or_what_there_is(job: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder out"):
        merge(OUT, MADE)
    with pytest.raises(EngineError):
        go(job, engine=ShufflingEngine(window=1, stop_after=19, error=EngineError("gone")))
    with pytest.raises(UsageError, match="is not finished: 2 of 4 chunks are still to do; finish it, or take"):
        merge(OUT, MADE)
    made = merge(OUT, MADE, partial=True)
    assert (made.rows, made.left) == (8, "2 of 4 chunks are still to do")
    assert "this is not all of the job: 2 of 4 chunks are still to do" in made.text()
    assert merged("parquet")["row_id"].to_pylist() == [f"row{n}" for n in range(8)], "whole chunks alone"
    go(job)
    owner = OwnerRecord(OUT, Shard())
    owner.take()
    with pytest.raises(UsageError, match=r"is not finished: process \d+ on .* is at work on it"):
        merge(OUT, Path("again"))
    owner.release()
    assert merge(OUT, Path("again")).rows == 14


def test_answers_of_two_manifests_are_not_mixed(job: Path, manifest_file: Write) -> None:
    """One of two shards has done its chunks anew, with a task less."""
    go(job)
    more = {"input": "{parquet: rows.parquet, id: name, keep: [kind]}", "errors": "{max_failure_rate: 1}"}
    go(manifest_file(tasks="[{name: cap, type: caption}]", **more), shard=Shard(0, 2))
    with pytest.raises(UsageError, match="some of its rows were answered by an earlier manifest"):
        merge(OUT, MADE)
    with pytest.raises(InputError, match="made by different manifests and have different columns; run the job"):
        merge(OUT, MADE, partial=True)
    assert not MADE.exists()


def test_whole_or_not_at_all(job: Path) -> None:
    go(job)
    last = Path("out/data/part-000003.arrow")
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(data)
    before = set(Path().iterdir())
    with pytest.raises(InputError, match=r"part-000003\.arrow is not as it was written; photon-batch verify out tells"):
        merge(OUT, MADE, rows_per_file=2)
    last.unlink()
    with pytest.raises(InputError, match=r"cannot read out/data/part-000003\.arrow"):
        merge(OUT, MADE)
    assert set(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("place", "options", "error", "message"),
    [
        ("taken", {}, OutputError, "taken is not empty"),
        ("out/merged", {}, UsageError, "holds results and nothing else"),
        ("made", {"form": "csv"}, UsageError, "into parquet or arrow, not 'csv'; correct --format"),
        ("made", {"rows_per_file": 0}, UsageError, "at least one row, not 0; correct --rows-per-file"),
    ],
)
def test_wrong_options(job: Path, place: str, options: dict[str, Any], error: type[Exception], message: str) -> None:
    go(job)
    Path("taken").mkdir()
    Path("taken/mine").write_text("x")
    with pytest.raises(error, match=message):
        merge(OUT, Path(place), **options)
    assert Path("taken/mine").read_text() == "x"


def test_command_line(job: Path) -> None:
    go(job)
    done = CliRunner().invoke(app, ["merge", "out", "--out", "made", "--rows-per-file", "10", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["rows"], told["files"]) == (14, ["part-00000.parquet", "part-00001.parquet"])
    assert done.stderr == f"wrote 14 rows into made: 2 files, {told['bytes'] / 1e6:,.1f} MB\n"
    assert CliRunner().invoke(app, ["merge", "out", "--out", "made"]).exit_code == 5
