"""A task as the run's record tells it, and which labels it asked of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from photon.errors import RowError, UsageError
from photon.manifest.template import Template

OBJECT_TYPES = ("detect", "point")
TEXT_TYPES = ("query", "caption")


@dataclass(frozen=True, slots=True)
class AskedTask:
    """``objects`` are the prompts of detect and point, templates as in the manifest; empty for text."""

    name: str
    type: str
    objects: tuple[Template, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the names of objects are filled from."""
        return tuple(dict.fromkeys(column for template in self.objects for column in template.columns))

    def labels(self, columns: Mapping[str, Any]) -> list[str]:
        """What was asked of a row with these ``columns``; a name that a null leaves unsaid was not asked."""
        filled = []
        for template in self.objects:
            try:
                filled.append(template.fill(columns))
            except RowError:
                continue
        return list(dict.fromkeys(filled))


def tasks_of(record: Mapping[str, Any], where: str) -> list[AskedTask]:
    """The tasks of a run.json, whatever else stands in it. Raises ``UsageError`` where it names none."""
    manifest = record.get("manifest")
    told = manifest.get("tasks") if isinstance(manifest, Mapping) else None
    if not isinstance(told, Sequence) or not told:
        raise UsageError(f"{where} names no tasks; give the output folder of a run")
    try:
        return [_task(task) for task in told]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the tasks in {where} cannot be read ({error!r}); was it written by another version?"
        ) from None


def _task(task: Mapping[str, Any]) -> AskedTask:
    objects = task.get("objects") if task["type"] in OBJECT_TYPES else ()
    return AskedTask(str(task["name"]), str(task["type"]), tuple(map(Template.parse, objects or ())))
