"""Whole runs through the null engine and through engines that misbehave."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.data.writer import PartWriter
from photon.errors import EngineError, InputError, OutputError, UsageError
from photon.job.load import load_manifest
from photon.job.progress import Bar
from photon.job.run import run
from photon.job.summary import Summary
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]


def rows_of(folder: str = "out") -> list[dict[str, Any]]:
    """All result rows, in the order of the part files."""
    found: list[dict[str, Any]] = ds.dataset(f"{folder}/data", format="ipc").to_table().to_pylist()
    return found


def record(folder: str = "out") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(Path(folder, "run.json").read_text())
    return made


def parts(folder: str = "out") -> list[str]:
    return sorted(path.name for path in Path(folder, "data").iterdir())


def run_file(path: Path, **options: Any) -> Summary:
    return run(load_manifest(path), **options)


def test_one_row_out_for_each_row_in_whatever_is_broken(manifest_file: Write) -> None:
    whole = png(size=(200, 200))
    images = [whole, whole[: len(whole) // 2], b"nothing", b"", None, *[whole] * 5]
    subjects = ["cat"] * 8 + [None, " "]
    write_parquet(Path("rows.parquet"), images, subject=subjects, camera=list(range(10)))
    summary = run_file(
        manifest_file(input="{parquet: rows.parquet, id: name, keep: [camera]}", errors="{max_failure_rate: 0.6}")
    )

    rows = rows_of()
    assert [row["row_id"] for row in rows] == [f"row{i}" for i in range(10)], "plan order"
    assert [row["camera"] for row in rows] == list(range(10))
    assert [row["error_code"] for row in rows] == [
        None,
        "IMAGE_TRUNCATED",
        "IMAGE_UNIDENTIFIED",
        "IMAGE_EMPTY",
        "IMAGE_MISSING",
        None,
        None,
        None,
        "PROMPT_NULL",
        "PROMPT_EMPTY",
    ]
    for row in rows[1:5]:
        assert row["status"] == "failed"
        assert row["image"] is None
        for name in ("things", "spots", "cap", "ask"):
            assert row[name]["status"] == "skipped"
        assert (row["things"]["objects"], row["spots"]["points"], row["cap"]["text"]) == (None, None, None)
    half = rows[8]
    assert half["image"]["width"] == 200
    assert [half[name]["status"] for name in ("things", "spots", "cap", "ask")] == ["ok", "failed", "ok", "failed"]
    assert half["spots"]["points"] is None
    assert half["error_message"].startswith("spots: column subject is null")
    assert (summary.rows, summary.ok, summary.failed, summary.exit_code) == (10, 4, 6, 0)
    assert {code.code for code in summary.codes} == {row["error_code"] for row in rows} - {None}
    assert parts() == ["part-000000.arrow", "part-000001.arrow", "part-000002.arrow"]


def test_answers_stand_in_their_columns(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(size=(40, 30))] * 24)
    run_file(manifest_file())
    rows = rows_of()
    for row in rows:
        assert row["status"] == "ok"
        assert row["image"]["width"], row["image"]["height"] == (40, 30)
        boxes = row["things"]["objects"]
        assert {box["label"] for box in boxes} <= {"cat", "dog"}
        assert [box["label"] for box in boxes] == sorted(box["label"] for box in boxes), "in the manifest's order"
        for box in boxes:
            edges = [box[name] for name in ("x_min", "y_min", "x_max", "y_max")]
            assert all(0 <= edge <= 1 for edge in edges), "the writer clamps"
        assert row["cap"]["text"].startswith("scripted caption")
        assert len(row["cap"]["task_fp"]) == 16
    assert any(row["spots"]["points"] == [] for row in rows)
    assert len({row["job_id"] for row in rows}) == 1


def test_the_record(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 5 + [None])
    path = manifest_file(run="{seed: 3}", errors="{max_failure_rate: 0.5}")
    run_file(path, limit=6)
    made = record()
    assert (made["state"], made["error"], made["seed"], made["schema_version"]) == ("finished", None, 3, 1)
    assert made["counts"] == {
        "rows": 6,
        "ok": 5,
        "failed": 1,
        "requests": 25,
        "found": made["counts"]["found"],
        "codes": {"IMAGE_MISSING": 1},
        "parts": 2,
        "rows_on_disk": 6,
    }
    assert made["manifest"]["input"]["limit"] == 6, "as it was run"
    assert len(made["manifest_sha256"]) == 64
    assert made["model"]["fingerprint"] == "null-1"
    assert made["versions"]["pyarrow"]
    assert made["job_id"] == rows_of()[0]["job_id"]
    assert made["task_fp"]["things"] == rows_of()[0]["things"]["task_fp"]


def test_statistics_and_the_trace_of_a_run(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(), png("blue")])
    tasks = "[{name: spots, type: point, objects: [cat, dog], max_objects: 2}]"
    path = manifest_file(model="{path: photon://tiny}", tasks=tasks)
    summary = run_file(path, trace=Path("trace.json"))
    assert summary.statistics is not None
    made = record()["engine"]
    assert made == summary.statistics.as_dict() == summary.as_dict()["statistics"]
    assert (made["steps"]["vision"] > 0, made["prefixes"], made["requests_per_prefix"]) == (True, 2, 2.0)
    assert 0 < made["busy_share"] <= 1
    assert summary.statistics.text() in summary.text()
    events = json.loads(Path("trace.json").read_text())
    assert sum(event["name"] == "commit" for event in events) == sum(made["steps"].values())


def test_traces_that_are_refused(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()])
    with pytest.raises(UsageError, match="photon://null takes no steps, so there is nothing to trace"):
        run_file(manifest_file(), trace=Path("trace.json"))
    with pytest.raises(UsageError, match=r"out holds results and nothing else; .* somewhere else than out/t\.json"):
        run_file(manifest_file(), trace=Path("out/t.json"))
    assert not Path("out").exists()
    summary = run_file(manifest_file())
    assert summary.statistics is None
    assert record()["engine"] is None


def test_the_fingerprint_of_a_task_follows_what_decides_its_answers(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()])

    def prints(tasks: str = "[{name: a, type: detect, objects: cat}]", **parts: str) -> str:
        run_file(manifest_file(tasks=tasks, **parts), fresh=True)
        made: str = next(iter(record()["task_fp"].values()))
        return made

    same = prints()
    assert prints(engine="{depth: 1, max_batch: 3}", run="{seed: 4}") == same
    assert prints("[{name: b, type: detect, objects: [cat]}]") == same, "a name is no setting"
    others = [
        prints("[{name: a, type: point, objects: cat}]"),
        prints("[{name: a, type: detect, objects: cat, max_objects: 9}]"),
        prints(image="{exif: ignore}"),
        prints(engine="{decision: reference}"),
        prints("[{name: a, type: caption, temperature: 0.5}]"),
        prints("[{name: a, type: caption, temperature: 0.5}]", run="{seed: 4}"),
    ]
    assert len({same, *others}) == 7


def test_limits(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    path = manifest_file(input="{parquet: rows.parquet, limit: 5}")
    assert run_file(path).rows == 5
    assert run_file(path, limit=7, fresh=True).rows == 7, "the argument wins"
    assert rows_of()[0]["row_id"] == "rows.parquet:0:0"


@pytest.mark.parametrize("images", [[], [None] * 6])
def test_inputs_that_need_no_engine(manifest_file: Write, images: list[None]) -> None:
    write_parquet(Path("rows.parquet"), images)
    summary = run_file(manifest_file(errors="{max_failure_rate: 1.0}"))
    assert (summary.rows, summary.requests, summary.exit_code) == (len(images), 0, 0)
    assert record()["state"] == "finished"
    assert len(parts()) == summary.parts == (2 if images else 0)


def test_over_budget(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 98 + [None] * 2)
    assert run_file(manifest_file()).exit_code == 3
    assert record()["state"] == "finished", "the rows are all there; the verdict is the exit code's"
    assert run_file(manifest_file(errors="{max_failure_rate: 0.02}"), fresh=True).exit_code == 0


def test_any_order_of_answers_gives_the_same_rows(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 23)
    path = manifest_file()
    made = []
    for window in (1, 7, 60, 1000):
        engine = ShufflingEngine(window)
        run_file(path, fresh=True, engine=engine)
        assert parts() == [f"part-{i:06d}.arrow" for i in range(6)]
        made.append([{**row, "job_id": None} for row in rows_of()])
    assert all(rows == made[0] for rows in made)
    assert [row["row_id"] for row in made[0]] == [f"row{i}" for i in range(23)]


def test_images_are_let_go_as_they_are_answered(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 60)
    engine = ShufflingEngine(window=10)  # of 5 requests a row
    run_file(manifest_file(), engine=engine)
    assert engine.most_alive <= 12, "the row being read, the window, and no more"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (EngineError("the device is gone"), "failed"),
        (RuntimeError("a bug"), "failed"),
    ],
)
def test_an_engine_that_breaks_off_leaves_whole_chunks(manifest_file: Write, error: BaseException, state: str) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 20)
    with pytest.raises(type(error)):
        run_file(manifest_file(), engine=ShufflingEngine(window=1, stop_after=5 * 10, error=error))
    assert parts() == ["part-000000.arrow", "part-000001.arrow"]
    assert [row["row_id"] for row in rows_of()] == [f"row{i}" for i in range(8)]
    made = record()
    assert made["state"] == state
    assert made["error"].startswith(type(error).__name__)
    assert (made["counts"]["rows"], made["counts"]["rows_on_disk"]) == (10, 8)


def test_an_engine_that_ends_too_early_is_caught(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 20)
    with pytest.raises(EngineError, match="left 1 rows unanswered"):
        run_file(manifest_file(), engine=ShufflingEngine(window=1, stop_after=52))
    assert record()["state"] == "failed"


def test_a_full_disk(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 40)
    honest = PartWriter.write

    def full(self: PartWriter, chunk: int, rows: list[dict[str, Any]]) -> Any:
        if chunk == 2:
            raise OutputError("cannot write part 2: No space left on device; free space")
        return honest(self, chunk, rows)

    monkeypatch.setattr(PartWriter, "write", full)
    engine = ShufflingEngine()
    with pytest.raises(OutputError, match="No space left on device"):
        run_file(manifest_file(), engine=engine)
    assert parts() == ["part-000000.arrow", "part-000001.arrow"]
    assert record()["state"] == "failed"
    assert engine.left_early or record()["counts"]["rows"] == 40, "a run that is left closes the engine's own"


def test_an_input_that_breaks_off(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    Path("rows2.parquet").write_bytes(b"PAR1 nothing more")
    terminal = io.StringIO()
    with pytest.raises(InputError, match=r"cannot read rows2\.parquet"):
        run_file(manifest_file(input="{parquet: [rows.parquet, rows2.parquet]}"), progress=Bar(terminal))
    assert record()["state"] == "failed"


def test_earlier_results_are_refused_or_replaced(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    path = manifest_file()
    run_file(path)
    with pytest.raises(OutputError, match="an earlier run"):
        run_file(path)
    run_file(path, fresh=True, limit=3)
    assert parts() == ["part-000000.arrow"]
    Path("out/notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"not ours: out/notes\.txt"):
        run_file(path, fresh=True)
    assert len(rows_of()) == 3


def test_a_model_that_cannot_be_loaded_costs_no_results(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()])
    run_file(manifest_file())
    Path("model").mkdir()
    with pytest.raises(Exception, match="model"):
        run_file(manifest_file(model="{path: model}"), fresh=True)
    assert len(rows_of()) == 1
