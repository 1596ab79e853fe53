"""What a truth column is about: one field for each task, or one task's truth alone. Looks at types, not at values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from photon.errors import UsageError
from photon.job.asked import AskedTask
from photon.manifest.problems import nearest

_BOX_FIELDS = {"bbox", "label", "category", "x_min"}


@dataclass(frozen=True, slots=True)
class TaskTruth:
    """``pick`` takes a task's truth out of the column's cell, None where there is none; ``names`` are those of the
    classes where the column holds their numbers."""

    task: AskedTask
    pick: Callable[[Any], Any]
    names: tuple[str, ...] | None = None


def truths_of(
    kind: pa.DataType, feature: object, tasks: Sequence[AskedTask], chosen: str | None, where: str
) -> list[TaskTruth]:
    """The tasks that a column of type ``kind`` holds truth for. ``feature`` is what ``datasets`` left about it, None
    for nothing; ``where`` names the column. Raises ``UsageError`` where it fits no task."""
    names = [task.name for task in tasks]
    if chosen is not None and chosen not in names:
        raise UsageError(f"the run has no task {chosen}; {nearest(chosen, names)}")
    wanted = [task for task in tasks if chosen in (None, task.name)]
    if pat.is_map(kind):
        return [TaskTruth(task, _entry(task.name), class_names(feature)) for task in wanted]
    fields = [field.name for field in kind] if pat.is_struct(kind) else []
    if any(name in fields for name in names) or (fields and not _BOX_FIELDS & set(fields)):
        found = [task for task in wanted if task.name in fields]
        if not found:
            missing = wanted[0].name if chosen else ", ".join(names)
            raise UsageError(
                f"{where} has a field for none of the tasks asked for ({missing}); "
                f"name its fields, {', '.join(fields)}, like the tasks"
            )
        return [TaskTruth(task, _entry(task.name), class_names(_field(feature, task.name))) for task in found]
    if len(wanted) > 1:
        raise UsageError(
            f"{where} holds {_short(kind)}, the truth of one task, and the run has {', '.join(names)}; "
            "say which with --task, or make the column a struct with one field for each task"
        )
    return [TaskTruth(wanted[0], _whole, class_names(feature))]


def class_names(feature: object) -> tuple[str, ...] | None:
    """The names of the first ClassLabel in a feature's JSON form, however deep; None where there is none."""
    if isinstance(feature, Mapping):
        names = feature.get("names")
        if feature.get("_type") == "ClassLabel" and isinstance(names, Sequence) and not isinstance(names, str):
            return tuple(map(str, names))
        inner: Sequence[object] = list(feature.values())
    else:
        inner = feature if isinstance(feature, list) else ()
    return next((names for names in map(class_names, inner) if names is not None), None)


def _whole(cell: Any) -> Any:
    return cell


def _entry(name: str) -> Callable[[Any], Any]:
    """Of a struct's mapping, or of a map's list of pairs."""
    return lambda cell: None if cell is None else dict(cell).get(name)


def _field(feature: object, name: str) -> object:
    return feature.get(name) if isinstance(feature, Mapping) else None


def _short(kind: pa.DataType) -> str:
    text = str(kind)
    return text if len(text) <= 60 else f"{text[:57]}..."
