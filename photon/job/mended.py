"""Pictures of a folder that were touched, or put right under their old names: which of them a plan takes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from photon.data.folder import shown_name
from photon.data.writer import digest_of
from photon.job.outcome import Cells
from photon.job.recall import rows_on_disk
from photon.plan.plan import Plan


class Mended:
    """Holds a picture that has changed against what is on disk of its row: the new one may take the place of the old
    one where no answer about another picture would stay.

    That is so where it has the bytes that the row was answered about (somebody copied it), for a row that is still to
    be asked, and for one that failed in all its tasks and is asked again: ``retry`` as for ``Recall``.
    """

    def __init__(self, root: Path, plan: Plan, retry: Collection[str] | None) -> None:
        self._root, self._plan, self._retry = root, plan, retry
        self._chunk = -1
        self._rows: list[Cells] = []

    def may_be_new(self, number: int) -> bool:
        """Whether unit ``number`` of the plan may be another picture now. Raises ``InputError`` for a part that cannot
        be read."""
        plan = self._plan
        if plan.reader != "folder":
            return False
        if plan.rows is not None and number >= plan.rows:  # left out by a limit: the number is the row's place
            return True
        path = plan.units[number].path
        rows = [row for row in self._rows_of(number) if row["source"]["file"] == shown_name(path)]
        return all(_is_about(row, path) or self._is_asked_anew(row) for row in rows)

    def _rows_of(self, number: int) -> list[Cells]:
        """Those on disk of the chunk that it is in; of several in one chunk, read once."""
        chunk = self._plan.at(number).number
        if chunk != self._chunk:
            self._chunk, self._rows = chunk, list(rows_on_disk(self._root, chunk))
        return self._rows

    def _is_asked_anew(self, row: Cells) -> bool:
        if row["status"] == "ok" or self._retry is None or (self._retry and row["error_code"] not in self._retry):
            return False
        answers = (value for value in row.values() if isinstance(value, dict) and "task_fp" in value)
        return not any(answer["status"] == "ok" for answer in answers)


def _is_about(row: Cells, path: str) -> bool:
    """Whether it is the very file that the row is about."""
    try:
        return row["image"] is not None and row["image"]["sha256"] == digest_of(Path(path))
    except OSError:
        return False
