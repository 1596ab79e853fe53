"""The row assembler: takes results in any order and gives back whole rows.

It holds no image: of a row that waits for answers only its columns are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

from photon.core import Failure, ImageInfo, Result
from photon.data.row import Row, RowRef
from photon.job.answer import failed_answer, merged_answer, skipped_answer
from photon.job.outcome import Cells, Outcome
from photon.job.questions import Asked, RequestId
from photon.manifest.tasks import Task

#: The code of a row that brought the engine down, each time it was asked about.
POISON = "ENGINE_POISON"
_SOURCE = RowRef.__slots__
_source_of = attrgetter(*_SOURCE)
_IMAGE = tuple(name for name in ImageInfo.__slots__ if name != "odd_orientation")  # which the run counts
_image_of = attrgetter(*_IMAGE)


@dataclass(slots=True)
class _Waiting:
    """A row of which some requests are still unanswered."""

    place: int
    row_id: str
    ref: RowRef
    kept: dict[str, Any]
    asked: Asked
    results: dict[tuple[int, int], Result]
    left: int


class Assembler:
    """``fingerprints`` holds each task's task_fp by its name; ``kept`` names the columns to carry along."""

    def __init__(
        self, tasks: Sequence[Task], kept: Sequence[str], fingerprints: Mapping[str, str], job_id: str
    ) -> None:
        self._tasks = tasks
        self._kept = kept
        self._fingerprints = fingerprints
        self._job_id = job_id
        self._waiting: dict[int, _Waiting] = {}

    def open(self, row: Row, place: int, asked: Asked) -> Outcome | None:
        """Takes in a row before its requests are sent. The outcome at once when there is nothing to wait for."""
        kept = {name: row.columns[name] for name in self._kept}
        waiting = _Waiting(place, row.row_id, row.ref, kept, asked, {}, len(asked.requests))
        if not waiting.left:
            return self._outcome(waiting)
        self._waiting[place] = waiting
        return None

    def take(self, result: Result) -> Outcome | None:
        """Takes in one result; the row's outcome when it was the last one. Raises ``KeyError`` for a strange id."""
        place, number, prompt = cast(RequestId, result.id)
        waiting = self._waiting[place]
        if (number, prompt) in waiting.results:
            raise KeyError(f"request {result.id} was answered twice")
        waiting.results[number, prompt] = result
        waiting.left -= 1
        if waiting.left:
            return None
        del self._waiting[place]
        return self._outcome(waiting)

    @property
    def waiting(self) -> int:
        """Rows that wait for answers."""
        return len(self._waiting)

    @property
    def unanswered(self) -> list[tuple[int, str]]:
        """Place and id of the rows that wait for answers."""
        return [(waiting.place, waiting.row_id) for waiting in self._waiting.values()]

    def _outcome(self, row: _Waiting) -> Outcome:
        answers, failure = self._answers(row)
        known = row.asked.known
        info = next((result.image for result in row.results.values() if result.image), None)
        cells: Cells = {
            "row_id": row.row_id,
            "status": _status(failure),
            "error_code": failure.code if failure else None,
            "error_message": failure.message if failure else None,
            "source": dict(zip(_SOURCE, _source_of(row.ref), strict=True)),
            "image": _image(info) if info else known.cells["image"] if known else None,
            **row.kept,
            **answers,
            "job_id": self._job_id,
        }
        found = sum(len(answers[task.name].get(task.kind) or ()) for task in self._tasks if task.kind != "text")
        odd = info is not None and info.odd_orientation
        return Outcome(row.place, row.row_id, cells, found, len(row.asked.requests), failure, odd)

    def _answers(self, row: _Waiting) -> tuple[Cells, Failure | None]:
        """Each task's answer, and the row's failure: its own or its image's, else the first failed task's."""
        failed = row.asked.failed or _image_failure(row)
        answers: Cells = {}
        first: Failure | None = None
        for number, task in enumerate(self._tasks):
            digest = self._fingerprints[task.name]
            known = row.asked.known.answers.get(task.name) if row.asked.known else None
            if known is not None:
                answers[task.name] = known
                first = first or _known_failure(row, task.name)
            elif failed is not None:
                answers[task.name] = skipped_answer(digest)
            else:
                results = [row.results[key] for key in sorted(row.results) if key[0] == number]
                wrong = row.asked.failures.get(number) or next((r.error for r in results if r.error), None)
                if wrong is None:
                    answers[task.name] = merged_answer(task, results, digest)
                else:
                    answers[task.name] = failed_answer(wrong, digest)
                    first = first or Failure(wrong.code, f"{task.name}: {wrong.message}")
        return answers, failed or first


def _status(failure: Failure | None) -> str:
    if failure is None:
        return "ok"
    return "quarantined" if failure.code == POISON else "failed"


def _known_failure(row: _Waiting, task: str) -> Failure | None:
    """Why a task failed whose answer is taken over; a skipped one did so with its row."""
    assert row.asked.known is not None
    cells = row.asked.known.cells
    answer = row.asked.known.answers[task]
    if answer["status"] == "ok":
        return None
    code = answer["error_code"] or cells["error_code"]
    told = cells["error_message"] if code == cells["error_code"] else f"{task}: failed in an earlier run"
    return Failure(code, told)


def _image(info: ImageInfo) -> dict[str, Any]:
    """``asdict`` would look for more to copy in each of the fields, for every row."""
    return dict(zip(_IMAGE, _image_of(info), strict=True))


def _image_failure(row: _Waiting) -> Failure | None:
    """An unreadable image fails every request about it, and with them the row."""
    errors = (result.error for result in row.results.values() if result.error)
    return next((error for error in errors if error.code.startswith("IMAGE_")), None)
