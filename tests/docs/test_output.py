"""docs/output.md: its columns, files, keys and words are those of a job, and its snippets open and join one."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pat
import pytest

from photon.cli import app
from photon.core import FinishReason
from photon.data.schema import TaskColumn, result_schema
from photon.engine.statistics import Statistics
from photon.job.answer import _CUT_SHORT, _GRAVEST
from photon.job.folder import _BESIDE, _INSIDE
from photon.job.quarantine import _SCHEMA as QUARANTINE
from photon.job.record import State
from photon.job.run import run
from photon.manifest.load import load_manifest
from tests.docs.pages import blocks, inline_code, section, table, text_of
from tests.job.inputs import png, write_parquet

PAGE = text_of("docs/output.md")
COLUMNS = table(section(PAGE, "Columns"))
FIELDS, BOX, POINT = (
    table(part) for part in re.split(r"\n\n(?=\|)", section(PAGE, "What a task holds").strip(), maxsplit=2)
)
MANIFEST = """
version: 1
input: {parquet: cars.parquet, id: file_name, keep: [wanted]}
model: {path: photon://null}
tasks:
  - {name: cars, type: detect, objects: [car, bus]}
  - {name: doors, type: point, objects: ["{wanted}"]}
  - {name: about, type: query, question: "{wanted}?", reasoning: true}
output: {dir: outputs/cars, chunk_rows: 3}
errors: {max_failure_rate: 1}
"""


def kind(field: pa.Field) -> str:
    return field.type.__class__.__name__.removesuffix("Type").lower() if pat.is_nested(field.type) else str(field.type)


def described(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows]


def test_the_columns_are_those_of_the_schema() -> None:
    kept = pa.field("kept columns", pa.null())
    found = []
    for field in result_schema([TaskColumn("TASK", "text")], [kept]):
        found.append((field.name, "as in the input" if field.name == kept.name else kind(field)))
        if field.name in ("source", "image"):
            found += [(f"{field.name}.{part.name}", kind(part)) for part in field.type]
    assert described(COLUMNS) == found


def test_the_fields_of_tasks_are_those_of_the_schema() -> None:
    common = ("status", "error_code", "finish_reason", "n_tokens", "truncated", "task_fp")
    found: dict[str, str] = {}
    inside: dict[str, list[tuple[str, str]]] = {}
    for name in ("text", "objects", "points"):
        fields = list(TaskColumn("TASK", name, reasoning=name == "text").type)  # type: ignore[arg-type]
        assert [field.name for field in fields] == [*common, name, *(["reasoning"] if name == "text" else [])]
        found |= {field.name: kind(field) for field in fields}
        inside |= {
            f.name: [(part.name, kind(part)) for part in f.type.value_type] for f in fields if pat.is_list(f.type)
        }
    assert dict(described(FIELDS)) == found
    assert (described(BOX), described(POINT)) == (inside["objects"], inside["points"])


@pytest.fixture
def job(workplace: Path) -> list[dict[str, Any]]:
    """The rows of a job with a broken picture, one that is missing, and a prompt without its value."""
    write_parquet(
        Path("cars.parquet"),
        [png("red", (20 + n, 30)) for n in range(6)] + [b"broken", None],
        file_name=[f"{n}.png" for n in range(8)],
        camera=[f"camera {n}" for n in range(8)],
        wanted=["door", None, *["wheel"] * 6],
    )
    Path("m.yaml").write_text(MANIFEST)
    run(load_manifest("m.yaml"))
    rows: list[dict[str, Any]] = ds.dataset("outputs/cars/data", format="ipc").to_table().to_pylist()
    return rows


def test_nulls_are_where_the_page_says(job: list[dict[str, Any]]) -> None:
    assert [row["status"] for row in job] == ["ok", "failed", "ok", "ok", "ok", "ok", "failed", "failed"]
    when = {
        "never": lambda row, cells: False,
        "ok": lambda row, cells: cells["status"] == "ok",
        "not failed": lambda row, cells: cells["status"] != "failed",
        "not ok": lambda row, cells: cells["status"] != "ok",
        "no picture decoded": lambda row, cells: row["error_code"] in ("IMAGE_UNIDENTIFIED", "IMAGE_MISSING"),
        "no profile": lambda row, cells: True,
    }
    for row in job:
        for name, _, null, _ in COLUMNS:
            first, _, inner = name.partition(".")
            if null and first != "TASK":
                value = (row[first] or {}).get(inner) if inner else row[first]
                assert (value is None) == when[null](row, row), (row["row_id"], name)
        for task in ("cars", "doors", "about"):
            for name, _, null, _ in FIELDS:
                if name in row[task] and name != "reasoning":  # which the null model has none of
                    assert (row[task][name] is None) == when[null](row, row[task]), (row["row_id"], task, name)


def test_the_words_for_statuses_and_reasons(job: list[dict[str, Any]]) -> None:
    statuses = table(section(PAGE, "Statuses"))
    of_rows, of_tasks = ({row[0] for row in statuses if row[column]} for column in (1, 2))
    assert of_rows == {"ok", "failed", "quarantined"} >= {row["status"] for row in job}
    assert of_tasks == {"ok", "failed", "skipped"} == {row[task]["status"] for row in job for task in ("cars", "doors")}
    reasons = table(section(PAGE, "Finish reasons"))
    assert [row[0] for row in reasons] == list(_GRAVEST)
    assert set(_GRAVEST) == set(typing.get_args(FinishReason))
    assert {row[0] for row in reasons if row[2] == "yes"} == set(_CUT_SHORT)


@pytest.mark.usefixtures("job")
def test_the_keys_of_run_json() -> None:
    record = json.loads(Path("outputs/cars/run.json").read_text())
    rows = {row[0]: row[1] for row in table(section(PAGE, "run.json"))}
    assert list(rows) == list(record)
    quoted = {key: set(re.findall(r"`([a-z_]+)`", line)) for key, line in _lines(section(PAGE, "run.json")).items()}
    for key in ("counts", "shard", "plan"):
        assert quoted[key] - {key} == set(record[key])
    assert quoted["state"] - {"state"} == set(typing.get_args(State))
    page = section(text_of("docs/performance.md"), "How to see it")
    assert {row[0] for row in table(page)} == set(Statistics().as_dict())


def _lines(text: str) -> dict[str, str]:
    """The lines of a table by their first cell."""
    return {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}


def test_the_files_are_those_that_a_job_may_write(job: list[dict[str, Any]]) -> None:
    listed = [name for row in table(section(PAGE, "Files")) for name in row[0].split(", ")]
    assert {name.split("/")[0] for name in listed if "/" in name} == set(_INSIDE)
    for name in listed:
        folder, _, file = name.rpartition("/")
        if folder == "crash":
            assert _INSIDE[folder].fullmatch("1-0000-of-0001-2.json")
        elif folder:
            assert _INSIDE[folder].fullmatch(file), name
        else:
            assert name in ("run.json", "preview.png", "report.html") or _BESIDE.fullmatch(name), name
    for path in Path("outputs/cars").rglob("*"):
        if path.is_file():
            parts = path.relative_to("outputs/cars").parts
            alike = re.sub(r"[0-9a-f]{16}|\d", "#", "/".join(parts))
            assert alike in {re.sub(r"[0-9a-f]{16}|\d", "#", name) for name in listed}, path


def test_quarantine_has_the_columns_that_are_listed() -> None:
    assert set(re.findall(r"`([a-z_]+)`", section(PAGE, "Quarantine"))) == set(QUARANTINE.names)


def test_the_snippets_open_and_join_a_job(job: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", Path("cache"))
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block.text, f"docs/output.md:{block.line}", "exec"), names)
    assert names["table"].num_rows == len(names["frame"]) == names["rows"].num_rows == 8
    assert names["failed"]["row_id"].to_pylist() == ["1.png", "6.png", "7.png"]
    boxes = [(row["row_id"], box) for row in job for box in row["cars"]["objects"] or ()]
    assert list(zip(names["ids"], names["flat"], strict=True)) == boxes
    assert boxes
    joined = names["joined"]
    assert joined["camera"].tolist() == [f"camera {n}" for n in range(8)]
    assert joined["row_id"].tolist() == joined["file_name"].tolist() == [f"{n}.png" for n in range(8)]
    assert names["by_position"] == [(f"camera {n}", row["cars"]) for n, row in enumerate(job)]


def test_the_commands_of_the_page_write_what_they_name(job: list[dict[str, Any]]) -> None:
    calls = [code.split()[1:] for code in inline_code(PAGE) if "--out" in code]
    assert [call[0] for call in calls] == ["export", "merge"]
    for call in calls:
        app(call, standalone_mode=False)
    assert pq.read_table("cars").num_rows == len(job)
