"""A plan held against a manifest: what a shard, which lists no input, and an input without an end can see of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.audit.prepare import prepare
from photon.data.unit import Unit
from photon.errors import UsageError
from photon.job.planning import open_plan
from photon.job.run import run
from photon.job.sources import reading_of
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.plan.plan import Plan, spans_of
from photon.plan.plan_file import create_plan, read_plan
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat]}]"
OUT = Path("out")


def shard(manifest: Manifest, number: int, **how: Any) -> int:
    return run(manifest, shard=Shard(number, 2), engine=ShufflingEngine(), **how).rows


def rows_on_disk() -> list[str]:
    found: list[str] = ds.dataset("out/data", format="ipc").to_table()["row_id"].to_pylist()
    return found


def words(text: str = "parquet: rows.parquet") -> dict[str, str]:
    return {"tasks": TASKS, "input": f"{{{text}, id: name}}"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "parquet: [others.parquet, rows.parquet]",
            r"input\.parquet rows\.parquet, and the manifest says others\.parquet, rows\.parquet;",
        ),
        ("arrow: rows.arrow", r"input\.parquet rows\.parquet, and the manifest says null;"),
        ("parquet: rows.parquet, limit: 6", "input.limit null, and the manifest, or --limit, says 6"),
        ("parquet: rows.parquet, limit: 60", "input.limit null, and the manifest, or --limit, says 60"),
    ],
    ids=["a further file", "another kind", "a lower limit", "a higher limit"],
)
def test_a_shard_whose_manifest_says_something_else(manifest_file: Write, text: str, told: str) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 16)
    for name in ("others.parquet", "rows.arrow"):
        Path(name).touch()
    assert shard(load_manifest(manifest_file(**words())), 0) == 8
    with pytest.raises(UsageError, match=told) as caught:
        shard(load_manifest(manifest_file(**words(text))), 1)
    assert "set it back, run photon-batch plan on this manifest first, choose another output.dir" in str(caught.value)
    assert shard(load_manifest(manifest_file(**words())), 1) == 8
    assert len(set(rows_on_disk())) == 16


def test_other_words_for_the_same_rows_are_planned_first(manifest_file: Write) -> None:
    """Then shards take them, whether the plan got rows by it or not; one process alone plans for itself."""
    write_parquet(Path("rows.parquet"), [png()] * 16)
    assert shard(load_manifest(manifest_file(**words())), 0) == 8
    other = load_manifest(manifest_file(**words("parquet: ./r*.parquet")))
    with pytest.raises(UsageError, match="photon-batch plan"):
        shard(other, 1)
    before = read_plan(OUT)
    prepare(other)
    after = read_plan(OUT)
    assert before is not None
    assert after is not None
    assert (after.units, after.spans, after.generations) == (before.units, before.spans, 2)
    assert shard(other, 1) == 8
    write_parquet(Path("rows2.parquet"), [png()] * 3, name=["a", "b", "c"])
    assert run(other, limit=18, engine=ShufflingEngine()).rows == 18
    with pytest.raises(UsageError, match=r"input\.limit 18, and the manifest, or --limit, says 17"):
        shard(other, 0, limit=17)
    assert [shard(other, 0, limit=18), shard(other, 1)] == [8, 10], "without a limit, what is planned"


def test_a_shard_of_a_file_that_changed(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 16)
    manifest = load_manifest(manifest_file(**words()))
    shard(manifest, 0)
    write_parquet(Path("rows.parquet"), [png("blue")] * 16)
    with pytest.raises(UsageError, match=r"rows\.parquet changed since the plan was made") as caught:
        shard(manifest, 1)
    assert caught.value.exit_code == 2
    assert len(rows_on_disk()) == 8


def test_of_two_first_plans_the_other_one_counts_with_its_words(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 16)
    ours = load_manifest(manifest_file(**words()))
    planned = open_plan(OUT, ours.with_limit(7), None)
    OUT.mkdir()
    theirs = open_plan(OUT, ours.with_limit(6), None)
    theirs.freeze(OUT, ours.with_limit(6), 4)
    with pytest.raises(UsageError, match=r"input\.limit 6, and the manifest, or --limit, says 7"):
        planned.freeze(OUT, ours.with_limit(7), 4)


class Stream:
    """As much of a source without an end as a plan is held against."""

    def units(self, known: object = None) -> list[Unit]:
        return [Unit("json/train", None)]


def stream(manifest_file: Write, text: str) -> Manifest:
    return load_manifest(manifest_file(**words(f"hub: json, options: {{data_files: rows.jsonl}}{text}")))


@pytest.mark.parametrize(
    ("planned", "asked", "told"),
    [
        (", limit: 8", "", "limit 8, and the manifest, or --limit, says null"),
        (", limit: 8", ", limit: 20", "limit 8, and the manifest, or --limit, says 20"),
        (", limit: 8", ", limit: 7", "limit 8, and the manifest, or --limit, says 7"),
        ("", ", limit: 8", "limit null, and the manifest, or --limit, says 8"),
        ("", ", split: test", "split null, and the manifest says test"),
    ],
)
def test_an_input_without_an_end_keeps_its_words(manifest_file: Write, planned: str, asked: str, told: str) -> None:
    first = stream(manifest_file, planned)
    units = Stream().units()
    OUT.mkdir()
    spans = spans_of(units, "stream", first.input.limit)
    create_plan(OUT, Plan("1f", 4, "stream", reading_of(first), units, spans))
    with pytest.raises(UsageError, match=told) as caught:
        open_plan(OUT, stream(manifest_file, asked), Stream())  # type: ignore[arg-type]
    assert "set it back, choose another output.dir, or start over with --fresh" in str(caught.value)


@pytest.mark.slow
def test_a_limit_of_an_input_without_an_end(manifest_file: Write) -> None:
    """Through a whole run; the import of ``datasets`` takes seconds."""
    Path("p.png").write_bytes(png())
    lines = [json.dumps({"image": str(Path("p.png").absolute()), "name": f"row{n}"}) for n in range(20)]
    Path("rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    manifest = stream(manifest_file, "")
    for _ in range(2):
        assert run(manifest, limit=8, engine=ShufflingEngine()).rows == 8
    for limit in (None, 20):
        with pytest.raises(UsageError, match=r"made with input\.limit 8"):
            run(manifest, limit=limit, engine=ShufflingEngine())
    assert run(manifest, fresh=True, engine=ShufflingEngine()).rows == 20
