"""A run's tasks for someone who looks: those whose answers can be shown, what they ask, and their labels' colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from photon.job.asked import OBJECT_TYPES, TEXT_TYPES, AskedTask
from photon.job.output import RunOutput
from photon.report.draw import COLOURS

MEANINGLESS = "The model is not a trained one: its answers are meaningless."


def shown_tasks(output: RunOutput) -> list[AskedTask]:
    """Those whose answers we know how to show."""
    return [task for task in output.tasks if task.type in (*OBJECT_TYPES, *TEXT_TYPES)]


def questions(output: RunOutput, tasks: Sequence[AskedTask]) -> list[str]:
    """What each of the tasks asks."""
    asked = {task["name"]: task for task in output.record["manifest"]["tasks"]}
    return [_question(asked[task.name]) for task in tasks]


def _question(task: dict[str, Any]) -> str:
    if task["type"] in OBJECT_TYPES:
        objects = task["objects"]
        return ", ".join([objects] if isinstance(objects, str) else objects)
    return str(task.get("question") or f"{task.get('length') or 'normal'} caption")


def fixed_labels(tasks: Sequence[AskedTask]) -> list[str]:
    """The labels that are the same for every row, where each can have a colour of its own: these stay theirs wherever
    the run is shown. Else colours go to the labels that are met."""
    labels = [template.fill({}) for task in tasks for template in task.objects if not template.columns]
    labels = list(dict.fromkeys(labels))
    return labels if len(labels) <= len(COLOURS) else []


def is_meaningless(output: RunOutput) -> bool:
    """Whether the record says that the model is not a trained one."""
    model = output.record.get("model")
    return isinstance(model, dict) and bool(model.get("meaningless"))
