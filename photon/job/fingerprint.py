"""task_fp: a short digest of all that decides a task's answers, so that answers of different makings are not mixed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from photon.manifest.manifest import Manifest
from photon.manifest.tasks import Task

#: Raised whenever the code itself changes what a task with the same settings answers.
ANSWERS_VERSION = 1


def shared_settings(manifest: Manifest, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What all tasks' answers hang on, by the names that people know. ``facts``: the engine's."""
    return {
        "version": ANSWERS_VERSION,
        "model": facts.get("fingerprint"),
        "dtype": facts.get("dtype"),
        **{f"image.{name}": value for name, value in manifest.image.model_dump(mode="json").items()},
        "decision": manifest.engine.decision,
        "stop_repetition": manifest.engine.stops_repetition,
    }


def task_fingerprint(task: Task, manifest: Manifest, facts: Mapping[str, Any]) -> str:
    """16 hex digits over ``shared_settings``, the task but for its name, its adapter's digest and, where answers are
    drawn, the seed. ``facts``: the engine's."""
    decides = {
        **shared_settings(manifest, facts),
        "task": task.model_dump(mode="json", exclude={"name", "adapter"}),
        "seed": manifest.run.seed if task.settings().get("temperature") else 0,
    }
    if task.adapter is not None:  # an engine without a model knows no digests: there, the name is all there is
        digests = facts.get("adapters") or {}
        decides["adapter"] = digests.get(task.adapter, task.adapter), manifest.adapter_semantics
    return digest(decides)[:16]


def digest(value: Any) -> str:
    """SHA-256, in hex, of plain values in one canonical spelling."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
