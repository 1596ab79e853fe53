"""``correct``: an export that people reviewed becomes truth for the run that it came from, in the form ``eval`` reads.

Boxes and texts come back, points do not: truth for points is boxes. Rows that nobody reviewed have no truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.schema import TaskKind
from photon.errors import UsageError
from photon.export.frame import FRAMES, Frame, view_of
from photon.export.match import Matcher
from photon.export.plan import KINDS
from photon.export.reviewed import Review, ReviewedBox, ReviewedPicture, read_review
from photon.export.staging import staged
from photon.export.table import Table
from photon.job.asked import AskedTask
from photon.job.output import RunOutput
from photon.manifest.problems import nearest

COLUMN = "truth"
_BOX = pa.struct({"label": pa.string(), **dict.fromkeys(("x_min", "y_min", "x_max", "y_max"), pa.float64())})
_TYPES: dict[TaskKind, pa.DataType] = {"objects": pa.list_(_BOX), "text": pa.string()}
_GROUP_ROWS = 5000


@dataclass(frozen=True, slots=True)
class Corrected:
    """``rows`` have truth in ``path``, for ``tasks``."""

    path: Path
    review: Review
    tasks: tuple[str, ...]
    rows: int
    boxes: int

    def text(self) -> str:
        """What to tell a person, with how to go on."""
        told = [f"wrote {self.path}: truth of {self.rows:,} rows, {self.boxes:,} boxes, for {', '.join(self.tasks)}"]
        if self.review.open:
            told.append(f"{self.review.open:,} pictures without an annotation are left out")
        if self.review.points:
            told.append(f"{self.review.points:,} points are left out, truth for points is boxes")
        return f"{'; '.join(told)}. Go on with eval OUTPUT --truth {COLUMN} --truth-file {self.path}"


def correct(folder: Path, source: Path, path: Path, tasks: tuple[str, ...] = (), frame: str | None = None) -> Corrected:
    """Writes the review in ``source`` of the output in ``folder`` as truth to ``path``, Parquet.

    ``tasks``: what was reviewed, where the file does not say; ``frame``: how pictures were seen, likewise. Raises
    ``UsageError`` where the review does not fit the run, ``InputError`` for what cannot be read, ``OutputError``.
    """
    if frame is not None and frame not in FRAMES:
        raise UsageError(f"--frame is oriented or stored, not {frame}")
    output, review = RunOutput(folder), read_review(source)
    if review.classes:
        raise UsageError(
            f"{source} was exported for {', '.join(review.classes)} alone, so it does not tell where the other classes "
            "are; review an export of all classes"
        )
    covered = _covered(output, review, tasks)
    kinds = [pa.field(task.name, _TYPES[KINDS[task.type]]) for task in covered]
    schema = pa.schema({"row_id": pa.string(), COLUMN: pa.struct(kinds)})
    rows = boxes = 0
    with staged(path, output.root, "truth", is_file=True) as place:
        table = Table(place, schema, _GROUP_ROWS)
        try:
            matcher = Matcher(review.pictures, review.where)
            for row, picture in matcher.matches(output):
                truth = _truth(row, picture, covered, _seen(row, picture, frame, review.where), review.where)
                table.add({"row_id": row["row_id"], COLUMN: truth})
                rows += 1
                boxes += len(picture.boxes)
        finally:
            table.close()
    return Corrected(path, review, tuple(task.name for task in covered), rows, boxes)


def _covered(output: RunOutput, review: Review, names: tuple[str, ...]) -> list[AskedTask]:
    """The tasks whose truth the review holds: those it names, else all that it could."""
    kinds = ("objects", "text") if review.has_texts else ("objects",)
    fitting = {task.name: task for task in output.tasks if KINDS.get(task.type) in kinds}
    known = {task.name for task in output.tasks}
    for name in names:
        if name not in fitting:
            raise UsageError(f"{review.where} cannot hold truth for task {name}; {nearest(name, [*fitting])}")
    for name in review.tasks:
        if name not in known:
            raise UsageError(
                f"{review.where} is of an export with task {name}, and {output.root} has none; give its run"
            )
    chosen = names or review.tasks
    if not chosen and len(fitting) > 1:
        raise UsageError(
            f"{review.where} does not say which tasks were reviewed, and {output.root} has {', '.join(fitting)}; "
            "name them with --task"
        )
    found = [task for name, task in fitting.items() if not chosen or name in chosen]
    if not found:
        raise UsageError(f"{review.where} holds nothing that can be truth: boxes of detect, or texts of Label Studio")
    return found


def _seen(row: Mapping[str, Any], picture: ReviewedPicture, frame: str | None, where: str) -> Frame | None:
    """The frame that the picture was reviewed in; None where both are one."""
    seen: Frame | None = frame or picture.frame  # type: ignore[assignment]  # checked
    if seen is None and row["image"]["exif_orientation"] != 1:
        raise UsageError(
            f"{where}: {picture.name} is turned by its EXIF orientation, and the file does not say how it was seen; "
            "say --frame oriented or --frame stored"
        )
    return seen


def _truth(
    row: Mapping[str, Any], picture: ReviewedPicture, tasks: list[AskedTask], frame: Frame | None, where: str
) -> dict[str, Any]:
    view = view_of(row["image"], frame)
    if picture.size not in (None, (view.width, view.height)):
        told = "{} x {}".format(*picture.size or ())
        raise UsageError(
            f"{where}: {picture.name} is {told} pixels there and {view.width} x {view.height} in the run; "
            "review the pictures in their own size, and see to --frame"
        )
    cells: dict[str, Any] = {
        task.name: [] if KINDS[task.type] == "objects" else picture.texts.get(task.name) for task in tasks
    }
    for box in picture.boxes:
        name = box.task or _task_of(box, tasks, where)
        if not isinstance(cells.get(name), list):
            known = ", ".join(task.name for task in tasks if task.type == "detect")
            raise UsageError(f"{where}: {picture.name} has a box of {name}; boxes go to the tasks reviewed: {known}")
        x_min, y_min, x_max, y_max = view.recorded_corners(box.corners)
        cells[name].append({"label": box.label, "x_min": x_min, "y_min": y_min, "x_max": x_max, "y_max": y_max})
    return cells


def _task_of(box: ReviewedBox, tasks: list[AskedTask], where: str) -> str:
    """For a box that has lost its task on the way."""
    looking = [task for task in tasks if task.type == "detect"]
    if len(looking) > 1:
        looking = [task for task in looking if box.label in task.labels(dict.fromkeys(task.columns))]
    if len(looking) != 1:
        raise UsageError(f"{where}: a box of {box.label!r} does not say which task it is of; correct one with --task")
    return looking[0].name
