"""One task's answer for one row, as the struct of the result's column: the results of its requests, merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from photon.core import Failure, FinishReason, Result
from photon.data.clip import clip_box, clip_point
from photon.manifest.tasks import Task

#: The reason that a merged answer keeps: the first of these that any of its requests ended with.
_GRAVEST: tuple[FinishReason, ...] = ("max_objects", "length", "repetition", "stop")
_CUT_SHORT = ("max_objects", "length")


def merged_answer(task: Task, results: Sequence[Result], task_fp: str) -> dict[str, Any]:
    """The answer of a task all of whose requests succeeded, in the order of its prompts. Nothing found is ``[]``."""
    reasons = [result.finish_reason for result in results]
    reason = reasons[0] if len(reasons) == 1 else next((reason for reason in _GRAVEST if reason in reasons), None)
    cells: dict[str, Any] = {
        "status": "ok",
        "error_code": None,
        "finish_reason": reason,
        "n_tokens": sum([result.n_tokens for result in results]),
        "truncated": reason in _CUT_SHORT,
        "task_fp": task_fp,
    }
    if task.kind == "objects":
        cells["objects"] = [clip_box(box) for result in results for box in result.objects or ()]
    elif task.kind == "points":
        cells["points"] = [clip_point(point) for result in results for point in result.points or ()]
    else:
        cells["text"] = results[0].text
        if task.shows_reasoning:
            thought = results[0].reasoning
            cells["reasoning"] = thought.text if thought else None
    return cells


def failed_answer(failure: Failure, task_fp: str) -> dict[str, Any]:
    """The answer of a task that failed: its code, and no values."""
    return {"status": "failed", "error_code": failure.code, "task_fp": task_fp}


def skipped_answer(task_fp: str) -> dict[str, Any]:
    """The answer of a task that was never asked, since the row's image could not be read."""
    return {"status": "skipped", "task_fp": task_fp}
