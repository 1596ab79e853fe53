"""The second pass: an output's rows as every format takes them, one at a time, in the frame that the plan names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from photon.export.frame import Corners, View, has_area, view_of
from photon.export.names import row_name
from photon.export.pictures import Pictures, StoredPicture
from photon.export.plan import Plan, failure_of, kept_marks

#: Columns of the result that every export looks at, beside its tasks'.
COLUMNS = ("row_id", "status", "error_code", "source", "image")


@dataclass(frozen=True, slots=True)
class FoundBox:
    """``number`` is the label's among the plan's classes of boxes; ``corners`` in [0, 1] of the row's view."""

    task: str
    label: str
    number: int
    score: float
    corners: Corners


@dataclass(frozen=True, slots=True)
class FoundPoint:
    task: str
    label: str
    number: int
    score: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class ExportRow:
    """``index`` counts the rows of the output, ``name`` is the picture's, with folders. ``part`` is "" without splits.
    ``cells`` are those of the result, as they were."""

    index: int
    row_id: str
    name: str
    part: str
    view: View
    boxes: tuple[FoundBox, ...]
    points: tuple[FoundPoint, ...]
    texts: Mapping[str, str]
    picture: StoredPicture | None
    cells: Mapping[str, Any]


@dataclass(slots=True)
class Tally:
    """What went through. ``flat``: boxes without area, which no tool can use, left out."""

    rows: int = 0
    boxes: int = 0
    points: int = 0
    flat: int = 0
    parts: Counter[str] = field(default_factory=Counter)


def export_rows(plan: Plan, tally: Tally) -> Iterator[ExportRow]:
    """The rows that did not fail. Raises ``InputError`` where a picture is wanted and is not what the run saw."""
    output, splits = plan.output, plan.options.splits
    pictures = None if plan.images == "none" else Pictures(output, plan.options.bake_exif)
    box_numbers, point_numbers = (
        {label: number for number, label in enumerate(plan.classes(kind))} for kind in ("objects", "points")
    )
    columns = [*COLUMNS, *output.kept, *(task.name for task in plan.tasks)]
    if plan.kind.is_file:
        columns.append("job_id")
    for index, row in enumerate(output.rows(columns)):
        if failure_of(row, plan.tasks) is not None:
            continue
        view = view_of(row["image"], plan.frame)
        part = splits.of(row["row_id"]) if splits else ""
        boxes = tuple(_boxes(row, plan, box_numbers, view, tally))
        points = tuple(_points(row, plan, point_numbers, view))
        texts = {task.name: row[task.name]["text"] or "" for task in plan.of_kind("text")}
        picture = pictures.read(row) if pictures else None
        tally.rows += 1
        tally.boxes += len(boxes)
        tally.points += len(points)
        tally.parts[part] += 1
        yield ExportRow(index, row["row_id"], row_name(row, output), part, view, boxes, points, texts, picture, row)


def _boxes(
    row: Mapping[str, Any], plan: Plan, numbers: Mapping[str, int], view: View, tally: Tally
) -> Iterator[FoundBox]:
    for task in plan.of_kind("objects"):
        for found in kept_marks(row[task.name], "objects", plan.options):
            corners = view.corners((found["x_min"], found["y_min"], found["x_max"], found["y_max"]))
            if has_area(corners):
                yield FoundBox(task.name, found["label"], numbers[found["label"]], found["score"], corners)
            else:
                tally.flat += 1


def _points(row: Mapping[str, Any], plan: Plan, numbers: Mapping[str, int], view: View) -> Iterator[FoundPoint]:
    for task in plan.of_kind("points"):
        for found in kept_marks(row[task.name], "points", plan.options):
            x, y = view.point(found["x"], found["y"])
            yield FoundPoint(task.name, found["label"], numbers[found["label"]], found["score"], x, y)
