"""Whole runs through the null engine and through engines that misbehave."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from safetensors.torch import load_file, save_file

from photon.core import Request, Result
from photon.data.parquet import ParquetSource
from photon.data.writer import PartWriter
from photon.errors import EngineError, InputError, OutputError, UsageError
from photon.job.engine import open_engine
from photon.job.progress import Bar
from photon.job.run import run
from photon.job.summary import Summary
from photon.manifest.load import load_manifest
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet
from tests.reference import ADAPTER

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
    assert (made["state"], made["error"], made["seed"], made["schema_version"]) == ("finished", None, 3, 2)
    assert made["counts"] == {
        "rows": 6,
        "ok": 5,
        "failed": 1,
        "found": made["counts"]["found"],
        "codes": {"IMAGE_MISSING": 1},
        "parts": 2,
        "planned": 6,
    }
    assert (made["shard"]["requests"], made["shard"]["number"], made["shard"]["count"]) == (25, 0, 1)
    assert made["manifest"]["input"]["limit"] == 6, "as it was run"
    assert len(made["manifest_sha256"]) == 64
    assert made["model"]["fingerprint"] == "null-3"
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


def test_the_fingerprint_of_a_task_follows_its_adapter(manifest_file: Write) -> None:
    """The file's content and how it is read, not what it is called; and it changes nothing for other tasks."""
    write_parquet(Path("rows.parquet"), [png()])
    tensors = load_file(ADAPTER)
    Path("copy.safetensors").write_bytes(ADAPTER.read_bytes())
    save_file({name: 2 * tensor for name, tensor in tensors.items()}, "other.safetensors")

    def prints(adapter: str | None, file: str | Path = ADAPTER, **parts: str) -> dict[str, str]:
        model = f"{{path: photon://tiny, adapters: {{a: {ADAPTER}, b: {file}}}, {parts.pop('model', '')}}}"
        spots = f"{{name: spots, type: point, objects: cat, max_objects: 1, adapter: {adapter or 'null'}}}"
        tasks = f"[{spots}, {{name: plain, type: point, objects: cat, max_objects: 1}}]"
        run_file(manifest_file(model=model, tasks=tasks, **parts), fresh=True)
        made: dict[str, str] = record()["task_fp"]
        return made

    same = prints("a")
    assert set(record()["model"]["adapters"]) == {"a", "b"}
    assert record()["manifest"]["model"]["adapters"]["a"] == str(ADAPTER)
    assert prints("b")["spots"] == prints("b", model="adapter_semantics: merged")["spots"] == same["spots"]
    assert prints("b", "copy.safetensors") == same
    others = [prints("b", "other.safetensors"), prints("a", model="adapter_semantics: reference")]
    assert {made["plain"] for made in others} == {same["plain"]}
    assert prints(None)["spots"] == same["plain"], "a task without an adapter is as it was before there were any"
    assert len({same["plain"], same["spots"], *(made["spots"] for made in others)}) == 4
    assert rows_of()[0]["status"] == "ok"


def test_adapters_that_the_engine_does_not_have(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()])
    tasks = "[{name: spots, type: point, objects: cat, adapter: a}]"
    path = manifest_file(model=f"{{path: photon://null, adapters: {{a: {ADAPTER}}}}}", tasks=tasks)
    assert run_file(path).ok == 1, "a dry run reads no weights"
    engine = ShufflingEngine()
    engine.facts["adapters"] = {"b": "1234"}
    with pytest.raises(UsageError, match="task spots: the engine was loaded without the adapter 'a'"):
        run_file(path, fresh=True, engine=engine)


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


def test_a_run_that_cannot_end_within_its_budget_is_stopped(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [None, None, *[png()] * 98])
    engine = ShufflingEngine(window=1)
    summary = run_file(manifest_file(errors="{min_rows: 9}"), engine=engine)
    assert (summary.rows, summary.exit_code, engine.left_early) == (9, 3, True)
    made = record()
    assert (made["state"], made["counts"]["rows"], len(rows_of())) == ("over_budget", 8, 8)
    enough = manifest_file(errors="{max_failure_rate: 0.02, min_rows: 9}")
    assert run_file(enough, fresh=True).rows == 100, "it may still come out well"
    assert run_file(manifest_file(errors="{min_rows: 100}"), fresh=True).rows == 100
    assert record()["state"] == "finished"


def test_input_in_the_output_folder_is_refused(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    run_file(manifest_file(tasks="[{name: cap, type: caption}]", input="{parquet: rows.parquet}"))
    part = Path("out/data/part-000000.arrow")
    Path("link").symlink_to("out")
    Path("linked.arrow").symlink_to(part)
    before = part.read_bytes()
    for named in ("out/data/*.arrow", "link/data/part-000000.arrow", "linked.arrow"):
        path = manifest_file(input=f"\n  arrow: '{named}'\n  image: row_id", tasks="[{name: new, type: caption}]")
        for fresh in (False, True):
            with pytest.raises(UsageError, match=r"m\.yaml:3: input\.arrow: .* lies in output\.dir, out, .*; choose"):
                run_file(path, fresh=fresh)
    loaded = "{hub: arrow, options: {data_dir: out/data}, image: row_id}"
    with pytest.raises(UsageError, match=r"input\.hub: .*part-000000\.arrow lies in output\.dir"):
        run_file(manifest_file(input=loaded, tasks="[{name: new, type: caption}]"), fresh=True)
    assert part.read_bytes() == before
    Path("here").mkdir()
    Path("here/photo.png").write_bytes(png())
    loaded = "{hub: imagefolder, options: {data_dir: here}}"
    path = manifest_file(input=loaded, tasks="[{name: cap, type: caption}]", output="{dir: here/out}")
    with pytest.raises(UsageError, match=r"input\.hub: here is searched for input, and output\.dir, here/out, lies in"):
        run_file(path)


def test_input_of_a_saved_dataset_in_the_output_folder_is_refused(manifest_file: Write) -> None:
    import datasets

    datasets.Dataset.from_dict({"image": ["a.png"]}).save_to_disk("out/data")
    with pytest.raises(UsageError, match=r"input\.arrow: .* lies in output\.dir"):
        run_file(manifest_file(input="{arrow: out/data}", tasks="[{name: cap, type: caption}]"), fresh=True)


def test_a_trace_takes_no_file_that_is_read(manifest_file: Write) -> None:
    rows = write_parquet(Path("rows.parquet"), [png()])
    path = manifest_file(model="{path: photon://tiny}")
    Path("link").symlink_to("rows.parquet")
    before = rows.read_bytes(), path.read_bytes()
    for name in ("rows.parquet", "./link", "m.yaml"):
        with pytest.raises(UsageError, match="is a file that this run reads; write the trace somewhere else"):
            run_file(path, trace=Path(name))
    assert (rows.read_bytes(), path.read_bytes()) == before


class IdleEngine(ShufflingEngine):
    """Asks for no more than 50 requests."""

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        return super().run(islice(requests, 50), trace=trace)


def test_an_engine_that_leaves_rows_unread_is_caught(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 20)
    with pytest.raises(EngineError, match="the engine ended after 10 rows, before the input did"):
        run_file(manifest_file(), engine=IdleEngine(window=1))
    assert record()["state"] == "failed"
    assert len(rows_of()) == 8, "no chunk with rows missing"


@pytest.mark.parametrize("limit", [None, 5])
def test_an_input_that_gives_fewer_rows_than_it_counts_is_caught(
    manifest_file: Write, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    honest = ParquetSource.rows
    monkeypatch.setattr(ParquetSource, "rows", lambda self, limit=None, start=0: honest(self, min(limit or 9, 3)))
    with pytest.raises(InputError, match=rf"the input promised {limit or 9} rows and gave 3"):
        run_file(manifest_file(), limit=limit)
    assert record()["state"] == "failed"


def test_the_fingerprint_of_a_task_follows_the_dtype(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()])
    prints = set()
    for dtype in ("float32", "bfloat16"):
        engine = ShufflingEngine()
        engine.facts["dtype"] = dtype
        run_file(manifest_file(), fresh=True, engine=engine)
        prints.add(record()["task_fp"]["cap"])
    assert len(prints) == 2


def test_a_model_in_the_home_folder(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path("home").resolve()))
    Path("home/model").mkdir(parents=True)
    write_parquet(Path("home/rows.parquet"), [png()])
    summary = run_file(manifest_file(input="{parquet: ~/rows.parquet}", output="{dir: ~/out}"))
    assert (summary.rows, len(rows_of("home/out")), Path("~").exists()) == (1, 1, False)
    asked: dict[str, Any] = {}
    monkeypatch.setattr("photon.job.engine.load_engine", lambda path, **options: asked.update(options, path=path))
    open_engine(
        load_manifest(manifest_file(input="{parquet: ~/rows.parquet}", model="{path: ~/model, tokenizer: ~/model}"))
    )
    assert asked["path"] == asked["tokenizer"] == str(Path("home/model").resolve())


@pytest.mark.parametrize(
    ("stop_after", "notes"), [(50, ["what was finished is on disk; the same command goes on"]), (3, [])]
)
def test_an_interrupt_tells_what_is_on_disk(manifest_file: Write, stop_after: int, notes: list[str]) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 20)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_file(manifest_file(), engine=ShufflingEngine(1, stop_after, KeyboardInterrupt()))
    assert getattr(caught.value, "__notes__", []) == notes


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
    assert (made["shard"]["rows"], made["counts"]["rows"]) == (10, 8)
    assert len(ds.dataset("out/open", format="ipc").to_table()) == 2, "the finished rows of the third chunk"


def test_an_engine_that_ends_too_early_is_caught(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 20)
    with pytest.raises(EngineError, match="left 1 rows unanswered"):
        run_file(manifest_file(), engine=ShufflingEngine(window=1, stop_after=52))
    assert record()["state"] == "failed"


def test_a_full_disk(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 40)
    honest = PartWriter.write

    def full(self: PartWriter, chunk: int, rows: list[dict[str, Any]], facts: dict[str, Any] | None = None) -> Any:
        if chunk == 2:
            raise OutputError("cannot write part 2: No space left on device; free space")
        return honest(self, chunk, rows, facts)

    monkeypatch.setattr(PartWriter, "write", full)
    engine = ShufflingEngine()
    with pytest.raises(OutputError, match="No space left on device"):
        run_file(manifest_file(), engine=engine)
    assert parts() == ["part-000000.arrow", "part-000001.arrow"]
    assert record()["state"] == "failed"
    assert engine.left_early or record()["shard"]["rows"] == 40, "a run that is left closes the engine's own"


def test_an_input_that_breaks_off(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    Path("rows2.parquet").write_bytes(b"PAR1 nothing more")
    terminal = io.StringIO()
    with pytest.raises(InputError, match=r"cannot read rows2\.parquet"):
        run_file(manifest_file(input="{parquet: [rows.parquet, rows2.parquet]}"), progress=Bar(terminal))
    assert not Path("out").exists(), "a plan needs every file"


def test_earlier_results_are_replaced(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 9)
    path = manifest_file()
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
