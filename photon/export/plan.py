"""A first pass over a run's output: what there is to export, and whether a format's tools would see it rightly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from photon.data.schema import TaskKind
from photon.errors import UsageError
from photon.export.frame import Frame
from photon.export.options import ExportOptions, Format, Images
from photon.job.asked import AskedTask
from photon.job.output import RunOutput
from photon.manifest.problems import nearest

KINDS: dict[str, TaskKind] = {"detect": "objects", "point": "points", "query": "text", "caption": "text"}


@dataclass(slots=True)
class Survey:
    """``labels``: by task, what was found in rows that are exported, with the class filter applied. ``turned``: rows
    whose picture has another frame when its EXIF orientation is ignored. ``failures``: rows left out, by code."""

    rows: int = 0
    turned: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    labels: dict[str, set[str]] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return self.failures.total()


@dataclass(frozen=True, slots=True)
class Plan:
    """``tasks`` are exported, ``left_out`` were wanted and cannot be held. ``frame`` is the one that pictures are seen
    in, None for the one that each row records. ``task_classes``: the labels of each detect and point task."""

    output: RunOutput
    kind: Format
    options: ExportOptions
    images: Images
    tasks: tuple[AskedTask, ...]
    left_out: tuple[AskedTask, ...]
    frame: Frame | None
    survey: Survey
    task_classes: Mapping[str, tuple[str, ...]]

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the splits; empty without."""
        return self.options.splits.names if self.options.splits else ()

    def of_kind(self, kind: TaskKind) -> list[AskedTask]:
        return [task for task in self.tasks if KINDS[task.type] == kind]

    def classes(self, kind: TaskKind) -> tuple[str, ...]:
        """The labels of all boxes, or of all points, by their numbers from 0. Without the other's: a class that can
        have no box would still cost a detector an output."""
        labels = dict.fromkeys(label for task in self.of_kind(kind) for label in self.task_classes[task.name])
        wanted = self.options.classes
        return tuple(label for label in dict.fromkeys(wanted) if label in labels) if wanted else tuple(labels)


def make_plan(output: RunOutput, kind: Format, options: ExportOptions) -> Plan:
    """Raises ``UsageError`` for names that are not there, for a format that can hold nothing of what is wanted, and
    where its tools would see pictures in a frame that nobody named."""
    images = options.images_of(kind)
    tasks, left_out = _wanted(output, kind, options.tasks)
    survey = _survey(output, tasks, options)
    task_classes = {task.name: _classes(task, survey, options) for task in tasks if KINDS[task.type] != "text"}
    _check_classes(options.classes, task_classes, tasks)
    frame = _frame(kind, options, survey, output)
    return Plan(output, kind, options, images, tasks, left_out, frame, survey, task_classes)


def failure_of(row: Mapping[str, Any], tasks: Sequence[AskedTask]) -> str | None:
    """Why a row is not exported, a code: one of ``tasks`` has no answer. An answer that is missing is never shown as
    one that found nothing."""
    if all(row[task.name] is not None and row[task.name]["status"] == "ok" for task in tasks) and row["image"]:
        return None
    codes = (row[task.name]["error_code"] for task in tasks if row[task.name] is not None)
    return row["error_code"] or next(filter(None, codes), None) or "FAILED"


def kept_marks(cell: Mapping[str, Any], kind: TaskKind, options: ExportOptions) -> list[dict[str, Any]]:
    """The boxes or points of an answer that the options let through."""
    lowest, classes = options.lowest, options.classes
    return [found for found in cell[kind] if found["score"] >= lowest and (not classes or found["label"] in classes)]


def _wanted(
    output: RunOutput, kind: Format, names: Sequence[str]
) -> tuple[tuple[AskedTask, ...], tuple[AskedTask, ...]]:
    known = {task.name: task for task in output.tasks}
    for name in names:
        if name not in known:
            raise UsageError(f"{output.root} has no task {name}; {nearest(name, [*known])}")
    chosen = [task for task in output.tasks if not names or task.name in names]
    held = tuple(task for task in chosen if KINDS.get(task.type) in kind.holds)
    if not held:
        told = ", ".join(f"{task.name} ({task.type})" for task in chosen)
        raise UsageError(f"{kind.name} cannot hold any of the tasks {told}; choose another format or other tasks")
    return held, tuple(task for task in chosen if task not in held)


def _survey(output: RunOutput, tasks: Sequence[AskedTask], options: ExportOptions) -> Survey:
    survey = Survey(labels={task.name: set() for task in tasks})
    for row in output.rows(["status", "error_code", "image", *(task.name for task in tasks)]):
        code = failure_of(row, tasks)
        if code is not None:
            survey.failures[code] += 1
            continue
        survey.rows += 1
        survey.turned += row["image"]["exif_orientation"] != 1
        for task in tasks:
            kind = KINDS[task.type]
            if kind != "text":
                survey.labels[task.name].update(found["label"] for found in kept_marks(row[task.name], kind, options))
    return survey


def _classes(task: AskedTask, survey: Survey, options: ExportOptions) -> tuple[str, ...]:
    """What every row was asked for, in the manifest's order, then what else was found: names filled from columns."""
    fixed = [template.fill({}) for template in task.objects if not template.columns]
    labels = dict.fromkeys([*fixed, *sorted(survey.labels[task.name])])
    return tuple(label for label in labels if not options.classes or label in options.classes)


def _check_classes(
    wanted: Sequence[str], task_classes: Mapping[str, Sequence[str]], tasks: Sequence[AskedTask]
) -> None:
    there = {label for labels in task_classes.values() for label in labels}
    asked = [template.fill({}) for task in tasks for template in task.objects if not template.columns]
    for label in wanted:
        if label not in there:
            known = list(dict.fromkeys([*asked, *sorted(there)]))
            raise UsageError(f"no task was asked for {label!r} and none found it; {nearest(label, known)}")


def _frame(kind: Format, options: ExportOptions, survey: Survey, output: RunOutput) -> Frame | None:
    if options.bake_exif:
        return "oriented"
    if options.frame is not None:
        return options.frame  # type: ignore[return-value]  # checked by the options
    if kind.is_file or kind.sees is not None or not survey.turned:
        return kind.sees
    raise UsageError(
        f"{survey.turned:,} of {survey.rows:,} pictures of {output.root} are turned by their EXIF orientation, and "
        f"tools that read {kind.name} differ in whether they turn them; say --bake-exif to write turned pictures, "
        "--frame oriented if your tool turns them, or --frame stored if it does not"
    )
