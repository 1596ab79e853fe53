"""Answers that are on disk already: of rows that a pre-empted run finished in a chunk that was not whole, and of chunks
that are computed again. A task's answer counts again where its fingerprint is the one of now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from photon.data.part_file import batches, opened
from photon.data.row import RowRef
from photon.data.writer import part_name
from photon.job.outcome import Cells

OPEN_FOLDER = "open"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a row: its old cells, and those of its tasks' answers that count again."""

    cells: Cells
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)


class Recall:
    """``tasks``: fingerprints of now by name. ``retry``: answer failed rows anew, all codes where it is empty."""

    def __init__(self, root: Path, tasks: Mapping[str, str], retry: Collection[str] | None = None) -> None:
        self._root, self._tasks, self._retry = root, tasks, retry

    def of(self, chunk: int) -> dict[RowRef, Known]:
        """The known rows of a chunk, by where they stand. Of a row in both places, the unfinished part's is newer."""
        rows = rows_on_disk(self._root, chunk)
        return {RowRef(**cells["source"]): Known(cells, self._answers(cells)) for cells in rows}

    def _answers(self, cells: Cells) -> dict[str, dict[str, Any]]:
        if self._retry is not None and cells["status"] != "ok" and self._is_retried(cells):
            # An image that could not be read fails them all; else only the failed ones are asked again.
            return {name: answer for name, answer in self._current(cells).items() if answer["status"] == "ok"}
        return self._current(cells)

    def _current(self, cells: Cells) -> dict[str, dict[str, Any]]:
        return {
            name: cells[name]
            for name, digest in self._tasks.items()
            if isinstance(cells.get(name), dict) and cells[name]["task_fp"] == digest
        }

    def _is_retried(self, cells: Cells) -> bool:
        return not self._retry or cells["error_code"] in self._retry


def rows_on_disk(root: Path, chunk: int) -> Iterator[Cells]:
    """The rows of a chunk's part, and then those of its unfinished one. Raises ``InputError``."""
    for folder in ("data", OPEN_FOLDER):
        path = root / folder / part_name(chunk)
        if path.exists():
            with opened(path) as reader:
                for batch in batches(reader):
                    yield from batch.to_pylist()
