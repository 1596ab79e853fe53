"""Result rows made up at random, for what only counts and chooses rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from photon.data.schema import TaskColumn, result_schema
from photon.job.asked import AskedTask

TASKS = (AskedTask("things", "detect"), AskedTask("spots", "point"), AskedTask("ask", "query"))
SCHEMA = result_schema([TaskColumn("things", "objects"), TaskColumn("spots", "points"), TaskColumn("ask", "text")], [])
_SCORES = [n / 64 for n in range(65)]  # exact in float32, with ties


def made_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Some fail, whole or in one task; some find nothing; some are cut short or repeat themselves."""
    dice = random.Random(seed)
    rows = []
    for n in range(count):
        row: dict[str, Any] = {"row_id": f"row {n}", "status": "ok", "image": {"width": 40, "height": 30}}
        if dice.random() < 0.1:
            code = dice.choice(["IMAGE_EMPTY", "IMAGE_TRUNCATED"])
            row |= {"status": "failed", "error_code": code, "error_message": f"number  {n}", "image": None}
            row |= {task.name: _cell(task, "skipped", None, dice) for task in TASKS}
        else:
            row |= {task.name: _cell(task, "ok", _answer(task, dice), dice) for task in TASKS}
            if dice.random() < 0.1:
                row |= {"status": "failed", "error_code": "PROMPT_NULL", "error_message": f"spots: number {n}"}
                row["spots"] = _cell(TASKS[1], "failed", None, dice)
        rows.append(row)
    return rows


def _answer(task: AskedTask, dice: random.Random) -> Any:
    if task.type == "query":
        return dice.choice(["yes", " yes ", "no", "", "maybe"])
    labels = [dice.choice(["cat", "dog"]) for _ in range(dice.choice([0, 0, 1, 2, 5]))]
    return [{"label": label, "score": dice.choice(_SCORES)} for label in labels]


def _cell(task: AskedTask, status: str, answer: Any, dice: random.Random) -> dict[str, Any]:
    name = {"detect": "objects", "point": "points", "query": "text"}[task.type]
    if status != "ok":
        return {"status": status, name: None}
    finish = dice.choice(["stop", "stop", "stop", "max_objects", "repetition"])
    return {"status": "ok", "finish_reason": finish, "truncated": finish == "max_objects", "n_tokens": 3, name: answer}


def batches(rows: Sequence[dict[str, Any]], size: int) -> list[pa.RecordBatch]:
    """The rows as they lie in part files; some batches are slices, whose columns do not start at their own start."""
    whole = pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)
    return [whole.slice(start, size) for start in range(0, len(rows), size)]


def found(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Its objects and points."""
    return [*(row["things"]["objects"] or []), *(row["spots"]["points"] or [])]


def mean_score(row: dict[str, Any]) -> float:
    """Of what was found in a row that has something."""
    scores = [one["score"] for one in found(row)]
    return float(sum(scores) / len(scores))
