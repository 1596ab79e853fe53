"""Where an export comes from, as its files tell: the model, the tasks, what was left out."""

from __future__ import annotations

from typing import Any

from photon.export.plan import Plan
from photon.job.output import RunOutput


def model_of(output: RunOutput) -> str:
    """The model as the manifest names it, with its revision."""
    model = output.record["manifest"].get("model") or {}
    path, revision = str(model.get("path") or "unknown"), model.get("revision")
    return f"{path}@{revision}" if revision else path


def is_meaningless(output: RunOutput) -> bool:
    """Whether the answers came from no trained model."""
    model = output.record.get("model")
    return isinstance(model, dict) and bool(model.get("meaningless"))


def provenance(plan: Plan) -> dict[str, Any]:
    """For a place in a format where anything may stand; ``correct`` reads it back."""
    options = plan.options
    return {
        "model": model_of(plan.output),
        "job_id": plan.output.record.get("job_id"),
        "tasks": [task.name for task in plan.tasks],
        "classes": list(options.classes),
        "min_score": options.min_score,
    }
