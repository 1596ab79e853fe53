from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from photon.core import Box, Failure, Image, ImageInfo, Result
from photon.data.row import Row, RowRef
from photon.job.assemble import Assembler
from photon.job.outcome import Outcome
from photon.job.questions import Questions
from photon.manifest.tasks import CaptionTask, DetectTask, PointTask, Task

TASKS: tuple[Task, ...] = (
    DetectTask(name="things", type="detect", objects=("cat", "dog", "{other}")),
    PointTask(name="spots", type="point", objects=("eye",)),
    CaptionTask(name="cap", type="caption"),
)
INFO = ImageInfo(40, 30, sha256="abc")
PRINTS = {"things": "f1", "spots": "f2", "cap": "f3"}


def box(label: str) -> Box:
    return Box(0, 0, 1, 1, label, 0.25, 0.5, 0.5)


def answered(request_id: Any, **changes: Any) -> Result:
    """A good answer to one request; ``changes`` override its fields."""
    _, number, prompt = request_id
    own: dict[str, Any] = (
        {"objects": [box(f"{prompt}.{i}") for i in range(2)]},
        {"points": []},
        {"text": "a cat"},
    )[number]
    return Result(request_id, **{"finish_reason": "stop", "n_tokens": 3, "image": INFO, **own, **changes})


def row(image: bytes | None = b"x", **columns: Any) -> Row:
    picture = None if image is None else Image(image)
    return Row(5, "id5", RowRef("f.parquet", 1, 2), picture, {"other": "bird", "camera": 9, **columns})


def outcomes(row: Row, shuffle: int = 0, answers: dict[tuple[int, int], dict[str, Any]] | None = None) -> list[Outcome]:
    """What comes out when ``row`` is opened and all its requests are answered, in a shuffled order."""
    assembler = Assembler(TASKS, ["camera"], PRINTS, "job")
    asked = Questions(TASKS, 0).about(row, row.index)

    def come() -> Iterator[Outcome | None]:
        yield assembler.open(row, row.index, asked)
        requests = list(asked.requests)
        random.Random(shuffle).shuffle(requests)
        for request in requests:
            _, number, prompt = request.id  # type: ignore[misc]
            yield assembler.take(answered(request.id, **(answers or {}).get((number, prompt), {})))

    made = [outcome for outcome in come() if outcome is not None]
    assert assembler.waiting == 0
    return made


@pytest.mark.parametrize("shuffle", range(5))
def test_a_whole_row_in_the_manifests_order_whatever_came_first(shuffle: int) -> None:
    (outcome,) = outcomes(row(), shuffle)
    cells = outcome.cells
    assert (outcome.place, outcome.row_id, outcome.found, outcome.failure) == (5, "id5", 6, None)
    assert (cells["row_id"], cells["status"], cells["error_code"], cells["error_message"]) == ("id5", "ok", None, None)
    assert cells["source"] == {"file": "f.parquet", "row_group": 1, "row": 2}
    assert (cells["image"]["width"], cells["image"]["sha256"], cells["camera"], cells["job_id"]) == (
        40,
        "abc",
        9,
        "job",
    )
    assert [b["label"] for b in cells["things"]["objects"]] == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    assert cells["things"]["n_tokens"] == 9
    assert cells["spots"]["points"] == [], "nothing found is an empty list"
    assert cells["cap"]["text"] == "a cat"
    assert [cells[name]["task_fp"] for name in PRINTS] == list(PRINTS.values())


def test_the_gravest_finish_reason_and_truncation() -> None:
    (outcome,) = outcomes(
        row(), answers={(0, 1): {"finish_reason": "max_objects"}, (2, 0): {"finish_reason": "length"}}
    )
    assert (outcome.cells["things"]["finish_reason"], outcome.cells["things"]["truncated"]) == ("max_objects", True)
    assert (outcome.cells["cap"]["finish_reason"], outcome.cells["cap"]["truncated"]) == ("length", True)
    assert (outcome.cells["spots"]["finish_reason"], outcome.cells["spots"]["truncated"]) == ("stop", False)
    (outcome,) = outcomes(row(), answers={(0, 1): {"finish_reason": "repetition"}})
    assert (outcome.cells["things"]["finish_reason"], outcome.cells["things"]["truncated"]) == ("repetition", False)


def test_one_failed_request_fails_its_task_and_the_row_but_no_other_task() -> None:
    error = {"error": Failure("PROMPT_TOO_LONG", "too long"), "objects": None, "finish_reason": None}
    (outcome,) = outcomes(row(), answers={(0, 1): error})
    assert outcome.failure == Failure("PROMPT_TOO_LONG", "things: too long")
    cells = outcome.cells
    assert (cells["status"], cells["error_code"], cells["error_message"]) == (
        "failed",
        "PROMPT_TOO_LONG",
        "things: too long",
    )
    assert cells["things"] == {"status": "failed", "error_code": "PROMPT_TOO_LONG", "task_fp": "f1"}
    assert (cells["spots"]["status"], cells["cap"]["text"]) == ("ok", "a cat")
    assert outcome.found == 0


def test_a_prompt_without_a_value() -> None:
    (outcome,) = outcomes(row(other=None))
    assert outcome.failure is not None
    assert outcome.failure.code == "PROMPT_NULL"
    assert outcome.cells["things"]["status"] == "failed"
    assert outcome.cells["cap"]["status"] == "ok"
    assert outcome.cells["image"] is not None


@pytest.mark.parametrize("shuffle", range(3))
def test_an_unreadable_image_skips_every_task(shuffle: int) -> None:
    error = {"error": Failure("IMAGE_TRUNCATED", "cut off"), "image": None, "finish_reason": None}
    keys = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    (outcome,) = outcomes(row(), shuffle, dict.fromkeys(keys, error))
    assert outcome.failure == Failure("IMAGE_TRUNCATED", "cut off")
    assert outcome.cells["image"] is None
    assert [outcome.cells[name] for name in PRINTS] == [
        {"status": "skipped", "task_fp": fingerprint} for fingerprint in PRINTS.values()
    ]


def test_a_null_image_is_done_at_once() -> None:
    (outcome,) = outcomes(row(image=None, other=None))
    assert outcome.failure == Failure("IMAGE_MISSING", "the image cell is null")
    assert outcome.cells["image"] is None
    assert {outcome.cells[name]["status"] for name in PRINTS} == {"skipped"}


def test_strange_answers_are_bugs() -> None:
    assembler = Assembler(TASKS, ["camera"], PRINTS, "job")
    asked = Questions(TASKS, 0).about(row(), 5)
    assembler.open(row(), 5, asked)
    assembler.take(answered((5, 0, 0)))
    with pytest.raises(KeyError, match="answered twice"):
        assembler.take(answered((5, 0, 0)))
    with pytest.raises(KeyError):
        assembler.take(answered((6, 0, 0)))
    assert assembler.waiting == 1
