"""The row assembler: takes results in any order and gives back whole rows.

It holds no image: of a row that waits for answers only its columns are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from photon.core import Failure, ImageInfo, Result
from photon.data.row import Row, RowRef
from photon.job.answer import failed_answer, merged_answer, skipped_answer
from photon.job.chunks import Cells
from photon.job.outcome import Outcome
from photon.job.questions import Asked, RequestId
from photon.manifest.tasks import Task

_NO_IMAGE = Failure("IMAGE_MISSING", "the image cell is null")


@dataclass(slots=True)
class _Waiting:
    """A row of which some requests are still unanswered."""

    index: int
    row_id: str
    ref: RowRef
    kept: dict[str, Any]
    failures: dict[int, Failure]
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

    def open(self, row: Row, asked: Asked) -> Outcome | None:
        """Takes in a row before its requests are sent. The outcome at once when there is nothing to wait for."""
        kept = {name: row.columns[name] for name in self._kept}
        waiting = _Waiting(row.index, row.row_id, row.ref, kept, asked.failures, {}, len(asked.requests))
        if row.image is None or row.failure is not None:
            return self._outcome(waiting, row.failure or _NO_IMAGE)
        if not waiting.left:
            return self._outcome(waiting, None)
        self._waiting[row.index] = waiting
        return None

    def take(self, result: Result) -> Outcome | None:
        """Takes in one result; the row's outcome when it was the last one. Raises ``KeyError`` for a strange id."""
        index, number, prompt = cast(RequestId, result.id)
        waiting = self._waiting[index]
        if (number, prompt) in waiting.results:
            raise KeyError(f"request {result.id} was answered twice")
        waiting.results[number, prompt] = result
        waiting.left -= 1
        if waiting.left:
            return None
        del self._waiting[index]
        return self._outcome(waiting, None)

    @property
    def waiting(self) -> int:
        """Rows that wait for answers."""
        return len(self._waiting)

    def _outcome(self, row: _Waiting, failed: Failure | None) -> Outcome:
        answers, failure = self._answers(row, failed or _image_failure(row))
        info = next((result.image for result in row.results.values() if result.image), None)
        cells: Cells = {
            "row_id": row.row_id,
            "status": "ok" if failure is None else "failed",
            "error_code": failure.code if failure else None,
            "error_message": failure.message if failure else None,
            "source": _flat(row.ref),
            "image": _flat(info) if info else None,
            **row.kept,
            **answers,
            "job_id": self._job_id,
        }
        found = sum(len(answers[task.name].get(task.kind) or ()) for task in self._tasks if task.kind != "text")
        return Outcome(row.index, row.row_id, cells, found, failure)

    def _answers(self, row: _Waiting, row_failure: Failure | None) -> tuple[Cells, Failure | None]:
        """Each task's answer, and the row's failure: its own or its image's, else the first failed task's."""
        if row_failure is not None:
            return {name: skipped_answer(digest) for name, digest in self._fingerprints.items()}, row_failure
        answers, first = {}, None
        for number, task in enumerate(self._tasks):
            results = [row.results[key] for key in sorted(row.results) if key[0] == number]
            failure = row.failures.get(number) or next((result.error for result in results if result.error), None)
            if failure is None:
                answers[task.name] = merged_answer(task, results, self._fingerprints[task.name])
            else:
                answers[task.name] = failed_answer(failure, self._fingerprints[task.name])
                first = first or Failure(failure.code, f"{task.name}: {failure.message}")
        return answers, first


def _flat(record: RowRef | ImageInfo) -> dict[str, Any]:
    """The fields by their names. ``asdict`` would look for more to copy in each of them, for every row."""
    return {name: getattr(record, name) for name in record.__slots__}


def _image_failure(row: _Waiting) -> Failure | None:
    """An unreadable image fails every request about it, and with them the row."""
    errors = (result.error for result in row.results.values() if result.error)
    return next((error for error in errors if error.code.startswith("IMAGE_")), None)
