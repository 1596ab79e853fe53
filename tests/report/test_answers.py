from __future__ import annotations

from typing import Any

from photon.job.asked import tasks_of
from photon.report.answers import Line, Mark, lines_of, marks_of
from tests.evaluate.outputs import CAPTION, DETECT, POINT, QUERY, answer, failed, found, spot

TASKS = tasks_of({"manifest": {"tasks": [DETECT, POINT, QUERY, CAPTION]}}, "here")
FLOAT32 = 0.8999999761581421  # what 0.9 is stored as


def fail(code: str = "IMAGE_TRUNCATED") -> dict[str, Any]:
    return {**failed(code), "truncated": None}


def row(**cells: Any) -> dict[str, Any]:
    plain = {
        "things": answer("objects", [found("cat", (0.1, 0.2, 0.3, 0.4), FLOAT32), found("dog", (0, 0, 1, 1), 0.25)]),
        "spots": answer("points", [spot("cat", 0.5, 0.75, 0.5)]),
        "count": answer("text", " 3 "),
        "cap": answer("text", "A cat."),
    }
    return {"status": "ok", "error_message": None, **plain, **cells}


CAT, DOG, SPOT = (
    Mark("cat", FLOAT32, 0.1, 0.2, (0.3, 0.4)),
    Mark("dog", 0.25, 0, 0, (1, 1)),
    Mark("cat", 0.5, 0.5, 0.75),
)
TEXTS = [Line("count", "3"), Line("cap", "A cat.")]


def test_marks() -> None:
    assert marks_of(row(), TASKS) == [CAT, DOG, SPOT]
    assert marks_of(row(), TASKS[1:]) == [SPOT]
    assert marks_of(row(things=fail(), spots={"status": "skipped"}), TASKS) == []
    assert marks_of(row(things=None), TASKS) == [SPOT]


def test_a_threshold_means_the_stored_scores() -> None:
    assert marks_of(row(), TASKS, 0.9) == [CAT]
    assert marks_of(row(), TASKS, 0.25) == [CAT, DOG, SPOT]
    assert marks_of(row(), TASKS, 0.9001) == []


def test_lines() -> None:
    assert lines_of(row(), TASKS) == TEXTS
    assert lines_of(row(), TASKS[2:3]) == TEXTS[:1]


def test_what_marks_do_not_show() -> None:
    nothing = answer("objects", [])
    assert lines_of(row(things=nothing), TASKS) == [Line("things", "nothing found", "quiet"), *TEXTS]
    assert lines_of(row(), TASKS, 0.75) == [Line("spots", "nothing from 0.75 on", "quiet"), *TEXTS]
    assert lines_of(row(count=answer("text", " ")), TASKS)[0] == Line("count", "no text", "quiet")
    cut = {**row()["things"], "truncated": True}
    assert lines_of(row(things=cut), TASKS) == [Line("things", "cut short", "quiet"), *TEXTS]


def test_failures() -> None:
    cells = row(things=fail("PROMPT_NULL"), count=fail("CANCELLED"), status="failed", error_message="things: x is null")
    assert lines_of(cells, TASKS) == [
        Line("things", "PROMPT_NULL x is null", "bad"),
        Line("count", "CANCELLED", "bad"),
        Line("cap", "A cat."),
    ]
    skipped = {**fail(), "status": "skipped", "error_code": None}
    assert lines_of(row(things=skipped, spots=skipped, count=skipped, cap=skipped), TASKS) == []
