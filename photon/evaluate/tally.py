"""What is counted while rows go by: for each task, and for detect and point for each class of it."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from photon.evaluate.matching import match_boxes, match_points
from photon.evaluate.options import Judging
from photon.evaluate.truth import CORNERS, TrueBox
from photon.job.asked import AskedTask

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclass(slots=True)
class Rows:
    """``judged`` rows have truth, ``failed`` ones among them no answer; ``untold`` rows have no truth."""

    judged: int = 0
    failed: int = 0
    untold: int = 0
    truncated: int = 0


@dataclass(slots=True)
class ClassTally:
    """``scores`` and ``right`` hold every answer, whatever its score; the other counts keep to the judging's threshold.

    ``asked`` rows were asked about this class, ``empty`` of them hold none, ``empty_right`` of these were answered so;
    ``counted`` rows were answered, their counts off by ``off`` in all. Rows that hold boxes without area alone are
    asked and nothing else: something is there that nothing could match. ``true_boxes`` and ``found_boxes`` are flat:
    (row number, the corners, and for found ones the score), for detect alone.
    """

    asked: int = 0
    true: int = 0
    scores: array[float] = field(default_factory=lambda: array("d"))
    right: bytearray = field(default_factory=bytearray)
    empty: int = 0
    empty_right: int = 0
    counted: int = 0
    off: int = 0
    true_boxes: array[float] = field(default_factory=lambda: array("d"))
    found_boxes: array[float] = field(default_factory=lambda: array("d"))


class ObjectsTally:
    """A detect or point task. ``ignored`` counts true boxes by labels that were not asked, ``flat`` those without area,
    which nothing could match."""

    def __init__(self, task: AskedTask, judging: Judging) -> None:
        self.task, self.judging = task, judging
        self.rows = Rows()
        self.classes: dict[str, ClassTally] = {}
        self.ignored: Counter[str] = Counter()
        self.flat = 0

    def take(self, asked: Sequence[str], answer: Mapping[str, Any] | None, truth: Sequence[TrueBox]) -> None:
        """One row: the labels asked, the task's cell, and what is there. A failed answer misses all of it."""
        failed = answer is None or answer["status"] != "ok"
        self.rows.judged += 1
        self.rows.failed += failed
        self.rows.truncated += bool(not failed and answer and answer["truncated"])
        kind = "objects" if self.task.type == "detect" else "points"
        cells = [] if failed or answer is None else answer[kind]
        found: dict[str, list[Any]] = {label: [] for label in asked}
        for cell in sorted(cells, key=lambda cell: -cell["score"]):
            found.setdefault(cell["label"], []).append(cell)
        true: dict[str, list[TrueBox]] = {label: [] for label in found}
        flat = set()
        for box in truth:
            if box.label not in true:
                self.ignored[box.label] += 1
            elif box.has_area:
                true[box.label].append(box)
            else:
                self.flat += 1
                flat.add(box.label)
        for label, mine in found.items():
            tally = self.classes.setdefault(label, ClassTally())
            self._match(tally, mine, true[label])
            if true[label] or label not in flat:
                self._count(tally, mine, len(true[label]), failed)

    @property
    def unmatched(self) -> bool:
        """Whether there is truth, and none of it about a label that was asked for."""
        return bool(self.ignored) and not self.flat and not any(made.true for made in self.classes.values())

    def _match(self, tally: ClassTally, found: Sequence[Any], true: Sequence[TrueBox]) -> None:
        corners = [box.corners for box in true]
        if self.task.type == "detect":
            boxes = [(cell["x_min"], cell["y_min"], cell["x_max"], cell["y_max"]) for cell in found]
            right = match_boxes(boxes, corners, self.judging.iou)
            number = self.rows.judged
            for box in corners:
                tally.true_boxes.extend((number, *box))
            for cell in found:
                tally.found_boxes.extend((number, *(cell[name] for name in CORNERS), cell["score"]))
        else:
            right = match_points([(cell["x"], cell["y"]) for cell in found], corners)
        tally.asked += 1
        tally.true += len(true)
        tally.scores.extend(cell["score"] for cell in found)
        tally.right.extend(right)

    def _count(self, tally: ClassTally, found: Sequence[Any], true: int, failed: bool) -> None:
        number_found = sum(self.judging.counts(cell["score"]) for cell in found)
        if not true:
            tally.empty += 1
            tally.empty_right += not failed and not number_found
        if not failed:
            tally.counted += 1
            tally.off += abs(number_found - true)


class TextTally:
    """A query or caption. ``numbers``: rows whose truth and answer are numbers, ``off`` by so much in all; ``wordy``:
    rows whose truth is a number and whose answer is none."""

    def __init__(self, task: AskedTask) -> None:
        self.task = task
        self.rows = Rows()
        self.right = 0
        self.numbers = 0
        self.off = 0.0
        self.wordy = 0

    def take(self, answer: Mapping[str, Any] | None, truth: str) -> None:
        """One row. A failed answer is a wrong one."""
        self.rows.judged += 1
        if answer is None or answer["status"] != "ok":
            self.rows.failed += 1
            return
        self.rows.truncated += bool(answer["truncated"])
        text, truth = (answer["text"] or "").strip(), truth.strip()
        self.right += text.casefold() == truth.casefold()
        if _NUMBER.fullmatch(truth):
            if _NUMBER.fullmatch(text):
                self.numbers += 1
                self.off += abs(float(text) - float(truth))
            else:
                self.wordy += 1
