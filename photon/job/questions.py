"""What is asked about one row: its requests, with the columns filled in, and the tasks that cannot be asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from photon.core import Failure, Request
from photon.data.row import Row
from photon.errors import RowError
from photon.job.recall import Known
from photon.manifest.tasks import Task

#: (the row's place in the plan, task number, prompt number)
RequestId = tuple[int, int, int]
_NO_IMAGE = Failure("IMAGE_MISSING", "the image cell is null")


@dataclass(slots=True)
class Asked:
    """``failures`` holds, by task number, why a task is not asked of this row, ``known`` what is answered already; the
    other tasks are in ``requests``. ``failed``: why nothing is asked."""

    requests: list[Request] = field(default_factory=list)
    failures: dict[int, Failure] = field(default_factory=dict)
    known: Known | None = None
    failed: Failure | None = None


class Questions:
    """Turns rows into requests. All requests of a row share its one ``Image``."""

    def __init__(self, tasks: Sequence[Task], seed: int) -> None:
        self._tasks = [(number, task, task.templates, task.settings()) for number, task in enumerate(tasks)]
        self._seed = seed

    def about(self, row: Row, place: int, known: Known | None = None) -> Asked:
        """``place``: the row's in the plan. Tasks whose answer is ``known`` are not asked. A task whose prompt lacks a
        value fails whole: half a list of objects would pass for the whole one."""
        asked = Asked(known=known)
        left = self._tasks if known is None else [task for task in self._tasks if task[1].name not in known.answers]
        if not left:
            return asked
        asked.failed = _NO_IMAGE if row.image is None else row.failure
        if asked.failed is not None:
            return asked
        for number, task, templates, settings in left:
            try:
                prompts = [None if template is None else template.fill(row.columns) for template in templates]
            except RowError as error:
                asked.failures[number] = Failure(error.code, str(error))
                continue
            seed = self._row_seed(row.row_id, task.name) if settings.get("temperature") else 0
            for i, prompt in enumerate(prompts):
                request_id: RequestId = (place, number, i)
                asked.requests.append(Request(request_id, row.image, task.type, prompt, seed=seed, **settings))
        return asked

    def _row_seed(self, row_id: str, task: str) -> int:
        """Differs between rows and tasks, and stays when rows are added or the order changes."""
        text = f"{self._seed}:{task}:{row_id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
