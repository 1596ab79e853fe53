"""What an evaluation came to, task by task, as values for a program. ``table`` and ``chart`` show it to people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from photon.errors import OutputError
from photon.evaluate.figures import Figures
from photon.evaluate.options import Judging
from photon.evaluate.scores import Ranking
from photon.evaluate.tally import Rows


@dataclass(frozen=True, slots=True)
class ObjectsReport:
    """A detect or point task. ``micro`` pools the classes, ``macro`` is the mean over them; for points, ``precision``
    is the hit rate."""

    name: str
    type: str
    rows: Rows
    classes: Mapping[str, Figures]
    micro: Figures
    macro: Mapping[str, float | None]
    ranking: Ranking
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            **_head(self),
            "micro": self.micro.as_dict(),
            "macro": dict(self.macro),
            "classes": {label: figures.as_dict() for label, figures in self.classes.items()},
            "ranking": asdict(self.ranking),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class TextReport:
    """A query or caption. ``exact_match``: the share of answers that equal the truth, case and outer blanks aside;
    ``count_error``: mean distance where truth and answer are ``numbers``; ``wordy`` answers are none where one was due.
    """

    name: str
    type: str
    rows: Rows
    right: int
    numbers: int
    off: float
    wordy: int
    notes: tuple[str, ...]

    @property
    def exact_match(self) -> float:
        return self.right / self.rows.judged

    @property
    def count_error(self) -> float | None:
        return self.off / self.numbers if self.numbers else None

    def as_dict(self) -> dict[str, Any]:
        text = {"right": self.right, "exact_match": self.exact_match, "count_error": self.count_error}
        numbers = {"number_answers": self.numbers, "answers_without_number": self.wordy}
        return {**_head(self), **text, **numbers, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Report:
    """``rows`` in the output, ``failed`` of them as a whole or in a task; ``truth`` names the column."""

    output: str
    truth: str
    judging: Judging
    rows: int
    failed: int
    tasks: tuple[ObjectsReport | TextReport, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "output": self.output,
            "truth": self.truth,
            **asdict(self.judging),
            "rows": self.rows,
            "failed_rows": self.failed,
            "tasks": {task.name: task.as_dict() for task in self.tasks},
            "notes": list(self.notes),
        }

    def write(self, path: Path) -> None:
        """As JSON. Raises ``OutputError``."""
        try:
            path.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _head(report: ObjectsReport | TextReport) -> dict[str, Any]:
    rows = report.rows
    return {
        "type": report.type,
        "rows": rows.judged,
        "failed_rows": rows.failed,
        "rows_without_truth": rows.untold,
        "truncated_answers": rows.truncated,
    }
