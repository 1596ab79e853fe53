"""The row assembler: takes results in any order and gives back whole rows.

It holds no image: of a row that waits for answers only its columns are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from photon.core import Failure, ImageInfo, Result
from photon.data.row import Row, RowRef
from photon.job.answer import failed_answer, merged_answer, skipped_answer
from photon.job.outcome import Cells, Outcome
from photon.job.questions import Asked, RequestId
from photon.job.recall import Known
from photon.manifest.tasks import Task

#: The code of a row that brought the engine down, each time it was asked about.
POISON = "ENGINE_POISON"


@dataclass(slots=True)
class _Waiting:
    """A row of which some requests are still unanswered. ``results``: by task number, then by prompt number."""

    place: int
    row_id: str
    ref: RowRef
    kept: dict[str, Any]
    known: Known | None
    failed: Failure | None
    failures: Mapping[int, Failure]
    requests: int
    left: int
    results: dict[int, dict[int, Result]]


class Assembler:
    """``fingerprints`` holds each task's task_fp by its name; ``kept`` names the columns to carry along."""

    def __init__(
        self, tasks: Sequence[Task], kept: Sequence[str], fingerprints: Mapping[str, str], job_id: str
    ) -> None:
        self._tasks = [(number, task, fingerprints[task.name]) for number, task in enumerate(tasks)]
        self._kept = kept
        self._job_id = job_id
        self._waiting: dict[int, _Waiting] = {}

    def open(self, row: Row, place: int, asked: Asked) -> Outcome | None:
        """Takes in a row before its requests are sent. The outcome at once when there is nothing to wait for."""
        kept = {name: row.columns[name] for name in self._kept}
        count = len(asked.requests)
        waiting = _Waiting(
            place, row.row_id, row.ref, kept, asked.known, asked.failed, asked.failures, count, count, {}
        )
        if not count:
            return self._outcome(waiting)
        self._waiting[place] = waiting
        return None

    def take(self, result: Result) -> Outcome | None:
        """Takes in one result; the row's outcome when it was the last one. Raises ``KeyError`` for a strange id."""
        place, number, prompt = cast(RequestId, result.id)
        waiting = self._waiting[place]
        results = waiting.results.setdefault(number, {})
        if prompt in results:
            raise KeyError(f"request {result.id} was answered twice")
        results[prompt] = result
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
        info, broken = _of_image(row.results.values())
        answers, failure, found = self._answers(row, row.failed or broken)
        cells: Cells = {
            "row_id": row.row_id,
            "status": _status(failure),
            "error_code": failure.code if failure else None,
            "error_message": failure.message if failure else None,
            "source": row.ref._asdict(),
            "image": _image(info) if info else row.known.cells["image"] if row.known else None,
            **row.kept,
            **answers,
            "job_id": self._job_id,
        }
        odd = info is not None and info.odd_orientation
        return Outcome(row.place, row.row_id, cells, found, row.requests, failure, odd)

    def _answers(self, row: _Waiting, failed: Failure | None) -> tuple[Cells, Failure | None, int]:
        """Each task's answer; the row's failure: ``failed``, its own or its image's, else the first failed task's; and
        how much was found."""
        answers: Cells = {}
        first: Failure | None = None
        found = 0
        for number, task, digest in self._tasks:
            name = task.name
            answer: dict[str, Any]
            if row.known is not None and name in row.known.answers:
                answer = row.known.answers[name]
                first = first or _known_failure(row.known, name)
            elif failed is not None:
                answer = skipped_answer(digest)
            else:
                by_prompt = row.results.get(number, {})
                results = [by_prompt[prompt] for prompt in sorted(by_prompt)]
                wrong = row.failures.get(number) or _first_error(results)
                if wrong is None:
                    answer = merged_answer(task, results, digest)
                else:
                    answer = failed_answer(wrong, digest)
                    first = first or Failure(wrong.code, f"{name}: {wrong.message}")
            answers[name] = answer
            if task.kind != "text":
                found += len(answer.get(task.kind) or ())
        return answers, failed or first, found


def _of_image(results: Iterable[Mapping[int, Result]]) -> tuple[ImageInfo | None, Failure | None]:
    """What the results tell of their image, and why it could not be read: that fails every request about it, and with
    them the row. In loops, as below: a generator would take longer than all else about a question."""
    info: ImageInfo | None = None
    broken: Failure | None = None
    for of_task in results:
        for result in of_task.values():
            info = info or result.image
            if broken is None and result.error is not None and result.error.code.startswith("IMAGE_"):
                broken = result.error
    return info, broken


def _first_error(results: Sequence[Result]) -> Failure | None:
    for result in results:
        if result.error is not None:
            return result.error
    return None


def _status(failure: Failure | None) -> str:
    if failure is None:
        return "ok"
    return "quarantined" if failure.code == POISON else "failed"


def _known_failure(known: Known, task: str) -> Failure | None:
    """Why a task failed whose answer is taken over; a skipped one did so with its row."""
    cells, answer = known.cells, known.answers[task]
    if answer["status"] == "ok":
        return None
    code = answer["error_code"] or cells["error_code"]
    told = cells["error_message"] if code == cells["error_code"] else f"{task}: failed in an earlier run"
    return Failure(code, told)


def _image(info: ImageInfo) -> dict[str, Any]:
    cells = info._asdict()
    del cells["odd_orientation"]  # which the run counts
    return cells
