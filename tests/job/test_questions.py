from __future__ import annotations

from typing import Any

from photon.core import Failure, Image
from photon.data.row import Row, RowRef
from photon.job.questions import Asked, Questions
from photon.manifest.tasks import CaptionTask, DetectTask, PointTask, QueryTask, Task

DETECT = DetectTask(name="things", type="detect", objects=("cat", "{other}"), max_objects=7)
POINT = PointTask(name="spots", type="point", objects=("eye",))
CAPTION = CaptionTask(name="cap", type="caption", length="short", max_tokens=9)
QUERY = QueryTask(
    name="ask", type="query", question="Is it {other}?", reasoning=True, spatial_refs=((0.5, 0.5), (0.0, 0.0, 1.0, 1.0))
)


def ask(*tasks: Task, row_id: str = "a", index: int = 3, seed: int = 0, **columns: Any) -> Asked:
    row = Row(index, row_id, RowRef("f", 0, index), Image(b"x"), {"other": "dog", **columns})
    return Questions(tasks, seed).about(row, index)


def test_one_request_for_each_name_all_about_one_image() -> None:
    asked = ask(DETECT, POINT, CAPTION, QUERY)
    assert not asked.failures
    assert [(r.id, r.skill, r.prompt) for r in asked.requests] == [
        ((3, 0, 0), "detect", "cat"),
        ((3, 0, 1), "detect", "dog"),
        ((3, 1, 0), "point", "eye"),
        ((3, 2, 0), "caption", ""),
        ((3, 3, 0), "query", "Is it dog?"),
    ]
    assert len({id(r.image) for r in asked.requests}) == 1
    detect, _, point, caption, query = [r.settings for r in asked.requests]
    assert (detect.max_objects, point.max_objects) == (7, 50)
    assert (caption.length, caption.max_tokens) == ("short", 9)
    assert (query.reasoning, query.spatial_refs) == (True, ((0.5, 0.5), (0.0, 0.0, 1.0, 1.0)))


def test_a_null_in_one_prompt_fails_its_whole_task_and_no_other() -> None:
    asked = ask(DETECT, POINT, QUERY, other=None)
    assert {number: failure.code for number, failure in asked.failures.items()} == {0: "PROMPT_NULL", 2: "PROMPT_NULL"}
    assert [r.id for r in asked.requests] == [(3, 1, 0)]
    assert ask(DETECT, other=" ").failures[0].code == "PROMPT_EMPTY"


def test_nothing_is_asked_about_a_null_image() -> None:
    row = Row(0, "a", RowRef("f", 0, 0), None, {"other": None})
    assert Questions([DETECT, CAPTION], 0).about(row, 0) == Asked(
        failed=Failure("IMAGE_MISSING", "the image cell is null")
    )


def test_seeds_are_the_rows_own_and_only_where_text_is_drawn() -> None:
    drawn = CAPTION.model_copy(update={"temperature": 0.5})

    def seed(*, task: Task = drawn, **where: Any) -> int:
        return ask(task, **where).requests[0].settings.seed

    assert seed(task=CAPTION, seed=5) == 0
    assert seed(index=3) == seed(index=99), "the row's place does not matter, its id does"
    assert len({seed(), seed(seed=1), seed(row_id="b"), seed(task=drawn.model_copy(update={"name": "other"}))}) == 4
    assert 0 <= seed() < 2**31
