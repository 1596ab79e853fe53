"""What a result row's answers come to for someone who looks: marks on the picture, and lines beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from photon.job.asked import TEXT_TYPES, AskedTask

Tone = Literal["plain", "quiet", "bad"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point (``x``, ``y``) or, where ``far`` is given, a box from there to ``far``; in [0, 1] of the picture."""

    label: str
    score: float
    x: float
    y: float
    far: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """``quiet`` for what is not an answer in words, ``bad`` for a failure."""

    task: str
    text: str
    tone: Tone = "plain"


def marks_of(cells: Mapping[str, Any], tasks: Sequence[AskedTask], min_score: float = 0.0) -> list[Mark]:
    """What detect and point ``tasks`` found in a row, from ``min_score`` on, in the row's order."""
    marks = []
    for task in tasks:
        for found in _found(cells[task.name], min_score):
            if "x_min" in found:
                far = (found["x_max"], found["y_max"])
                marks.append(Mark(found["label"], found["score"], found["x_min"], found["y_min"], far))
            else:
                marks.append(Mark(found["label"], found["score"], found["x"], found["y"]))
    return marks


def lines_of(cells: Mapping[str, Any], tasks: Sequence[AskedTask], min_score: float = 0.0) -> list[Line]:
    """Texts, and what marks do not show: that nothing was found, that an answer was cut short or failed."""
    return [line for task in tasks for line in _lines(task, cells, min_score)]


def _lines(task: AskedTask, cells: Mapping[str, Any], min_score: float) -> Iterator[Line]:
    cell = cells[task.name]
    if cell is None or cell["status"] == "skipped":  # with the whole row, which says why
        return
    if cell["status"] != "ok":
        head, message = f"{task.name}: ", cells["error_message"] or ""  # the row's is that of its first failed task
        told = message.removeprefix(head) if message.startswith(head) else ""
        yield Line(task.name, " ".join(filter(None, (cell["error_code"] or "failed", told))), "bad")
    elif task.type in TEXT_TYPES:
        text = (cell["text"] or "").strip()
        yield Line(task.name, text, "plain") if text else Line(task.name, "no text", "quiet")
    elif not any(True for _ in _found(cell, min_score)):
        some = any(True for _ in _found(cell, 0.0))
        yield Line(task.name, f"nothing from {min_score:g} on" if some else "nothing found", "quiet")
    if cell["truncated"]:
        yield Line(task.name, "cut short", "quiet")


def _found(cell: Mapping[str, Any] | None, min_score: float) -> Iterator[Mapping[str, Any]]:
    lowest = float(np.float32(min_score))  # scores are float32: 0.9 means what 0.9 was stored as
    found = (cell.get("objects") or cell.get("points") or ()) if cell else ()
    return (one for one in found if one["score"] >= lowest)
