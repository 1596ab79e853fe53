"""Going on: after a kill, after a signal, with a grown input, another task, other settings, failed rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.core import Failure, Request, Result
from photon.errors import EngineError, UsageError
from photon.job.run import run
from photon.job.summary import Summary
from photon.manifest.load import load_manifest
from photon.plan.ledger import Ledger
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat, dog]}, {name: cap, type: caption}]"


def rows_of(folder: str = "out") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(f"{folder}/data", format="ipc").to_table().to_pylist()
    return found


def digests() -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("out/data").iterdir()}


def without_job(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({**row, "job_id": None} for row in rows), key=lambda row: str(row["row_id"]))


class Counting(ShufflingEngine):
    """Notes which requests it was asked."""

    def __init__(self, **how: Any) -> None:
        super().__init__(window=1, **how)
        self.asked: list[Any] = []

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        def noted() -> Iterator[Request]:
            for request in requests:
                self.asked.append(request.id)
                yield request

        return super().run(noted(), trace=trace)


def go(path: Path, **how: Any) -> tuple[Summary, list[Any]]:
    engine = how.pop("engine", None) or Counting()
    return run(load_manifest(path), engine=engine, **how), engine.asked


def test_the_same_call_goes_on_or_does_nothing(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 22)
    path = manifest_file(tasks=TASKS)
    with pytest.raises(EngineError):
        go(path, engine=Counting(stop_after=30, error=EngineError("gone")))
    before = digests()
    assert len(before) == 2, "eight of ten rows, four to a chunk"
    summary, asked = go(path)
    assert {place for place, _, _ in asked} == set(range(10, 22)), "the two rows of the open chunk are not asked again"
    assert (summary.rows, summary.new_rows, summary.exit_code) == (22, 14, 0)
    assert before.items() <= digests().items(), "committed parts stay as they are"
    assert not list(Path("out/open").iterdir())
    summary, asked = go(path)
    assert (summary.rows, summary.new_rows, asked) == (22, 0, [])
    assert "nothing was left to do" in summary.text()
    whole = rows_of()
    run(load_manifest(path), fresh=True, engine=ShufflingEngine())
    assert without_job(rows_of()) == without_job(whole), "as in one run"


def test_a_grown_input(manifest_file: Write) -> None:
    """New files, and new row groups of one that was there; the plan keeps its order."""
    write_parquet(Path("b.parquet"), [png()] * 5, name=[f"b{n}" for n in range(5)])
    path = manifest_file(tasks=TASKS, input="{parquet: '*.parquet', id: name}")
    go(path)
    before = digests()
    write_parquet(Path("a.parquet"), [png("blue")] * 3, name=[f"a{n}" for n in range(3)])
    write_parquet(Path("b.parquet"), [png()] * 5 + [png("blue")] * 4, name=[f"b{n}" for n in range(9)])
    with pytest.raises(UsageError, match=r"b\.parquet changed since the plan was made"):
        go(path)  # its second group had two rows and has three now
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_parquet(Path("b.parquet"), [png()] * 5, name=[f"b{n}" for n in range(5)])
    old = pq.read_table("b.parquet")
    with pq.ParquetWriter("b.parquet", old.schema) as writer:
        for start, stop in ((0, 3), (3, 5)):
            writer.write_table(old.slice(start, stop - start), row_group_size=3)
        new = pa.table(
            {"image": old["image"].take([0] * 4), "name": [f"b{n}" for n in range(5, 9)], "subject": ["x"] * 4}
        )
        writer.write_table(new.cast(old.schema))
    summary, asked = go(path)
    assert (summary.rows, summary.new_rows) == (12, 7)
    assert {place for place, _, _ in asked} == set(range(5, 12))
    assert before.items() <= digests().items()
    assert sorted(row["row_id"] for row in rows_of()) == [f"a{n}" for n in range(3)] + [f"b{n}" for n in range(9)]


def test_a_higher_limit_and_a_lower_one(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 22)
    path = manifest_file(tasks=TASKS)
    assert go(path, limit=6)[0].rows == 6
    summary, asked = go(path)
    assert (summary.rows, summary.new_rows, len({place for place, _, _ in asked})) == (22, 16, 16)
    with pytest.raises(UsageError, match="a plan of 22 rows, and 6 are asked for"):
        go(path, limit=6)


def test_a_limit_beyond_the_end_leaves_nothing_to_load(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 5)
    path = manifest_file(tasks=TASKS)
    run(load_manifest(path), limit=20)
    monkeypatch.setattr("photon.job.run.open_engine", lambda *_: pytest.fail("a model was loaded for nothing"))
    for limit in (None, 20, 5):
        summary = run(load_manifest(path), limit=limit)
        assert (summary.rows, summary.new_rows, summary.state) == (5, 0, "finished")
    with pytest.raises(pytest.fail.Exception):
        run(load_manifest(manifest_file(tasks=TASKS, input="{parquet: rows.parquet, id: name, keep: [subject]}")))


def test_a_changed_task_alone_is_asked_again(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9 + [None])
    errors = "{max_failure_rate: 1}"
    go(manifest_file(tasks=TASKS, errors=errors))
    before = rows_of()
    changed = TASKS.replace("[cat, dog]", "[cat]").replace("type: caption", "type: caption, length: short")
    path = manifest_file(tasks=changed.replace(", length: short", ""), errors=errors)
    summary, asked = go(path)
    assert {number for _, number, _ in asked} == {0}
    assert (summary.rows, summary.new_rows, summary.failed) == (10, 10, 1)
    after = rows_of()
    assert [row["cap"] for row in after] == [row["cap"] for row in before]
    assert {row["things"]["task_fp"] for row in after}.isdisjoint({row["things"]["task_fp"] for row in before})
    assert {record.generation for record in Ledger.read(Path("out")).records.values()} == {1}
    summary, asked = go(manifest_file(tasks="[{name: cap, type: caption}]", errors=errors))
    assert (asked, "things" in rows_of()[0]) == ([], False), "to leave a task out, nothing has to be asked"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": "{exif: ignore}"}, "were made with image.exif apply, and now it is ignore"),
        ({"engine": "{decision: reference}"}, "were made with decision masked, and now it is reference"),
        ({"input": "{parquet: rows.parquet, id: subject}"}, "made with input.id name, and the manifest says subject"),
        (
            {"input": "{parquet: others.parquet, id: name}"},
            "the plan has rows.parquet, which the manifest's input does",
        ),
    ],
)
def test_other_settings_are_errors(manifest_file: Write, change: dict[str, str], message: str) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 3)
    write_parquet(Path("others.parquet"), [png()] * 3)
    go(manifest_file(tasks=TASKS))
    before = digests()
    with pytest.raises(UsageError, match=message) as caught:
        go(manifest_file(tasks=TASKS, **change))
    assert "choose another output.dir, or start over with --fresh" in str(caught.value)
    assert digests() == before


def test_another_model_is_an_error(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    path = manifest_file(tasks=TASKS)
    with pytest.raises(EngineError):
        go(path, engine=Counting(stop_after=16, error=EngineError("gone")))
    other = Counting()
    other.fingerprint = "another"  # type: ignore[misc]
    with pytest.raises(UsageError, match="were made with model shuffling, and now it is another"):
        go(path, engine=other)


def test_a_changed_file_is_an_error(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    path = manifest_file(tasks=TASKS)
    go(path)
    write_parquet(Path("rows.parquet"), [png("blue")] * 9)
    with pytest.raises(UsageError, match=r"rows\.parquet changed since the plan was made"):
        go(path)


def test_failed_rows_are_asked_again(manifest_file: Write) -> None:
    """Those of one code, and those tasks alone that failed."""
    write_parquet(Path("rows.parquet"), [png()] * 8 + [None], subject=["cat"] * 4 + [None] + ["cat"] * 4)
    tasks = '[{name: ask, type: query, question: "a {subject}?"}, {name: cap, type: caption}]'
    path = manifest_file(tasks=tasks, errors="{max_failure_rate: 1}")
    assert go(path)[0].failed == 2
    first = digests()
    summary, asked = go(path, retry=["IMAGE_MISSING"])
    assert (asked, summary.failed) == ([], 2), "it is as null as before"
    assert {name for name, digest in digests().items() if first[name] != digest} == {"part-000002.arrow"}

    class Failing(Counting):
        def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
            for result in super().run(requests, trace=trace):
                failed = result.id == (2, 1, 0)
                yield Result(result.id, error=Failure("CANCELLED", "no time")) if failed else result

    run(load_manifest(path), engine=Failing(), fresh=True)
    assert rows_of()[2]["error_code"] == "CANCELLED"
    summary, asked = go(path, retry=["CANCELLED"])
    assert (asked, summary.failed) == ([(2, 1, 0)], 2)
    assert rows_of()[2]["status"] == "ok"
    assert (rows_of()[4]["error_code"], rows_of()[4]["cap"]["status"]) == ("PROMPT_NULL", "ok")


@pytest.mark.parametrize("counts", [(3, 5), (1, 4), (7, 1)])
def test_another_division_between_runs(manifest_file: Write, counts: tuple[int, int]) -> None:
    """The union is the input, once; each chunk is asked by one shard alone."""
    write_parquet(Path("rows.parquet"), [png()] * 31)
    path, first, second = manifest_file(tasks=TASKS), *counts
    places: list[int] = []
    for number in range(0, first, 2):
        places += {place for place, _, _ in go(path, shard=Shard(number, first))[1]}
    for number in range(second):
        places += {place for place, _, _ in go(path, shard=Shard(number, second))[1]}
    assert sorted(places) == list(range(31))
    assert [row["row_id"] for row in rows_of()] == [f"row{n}" for n in range(31)]
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert (record["state"], record["counts"]["rows"]) == ("finished", 31)
