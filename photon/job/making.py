"""What decides the answers of a run, held against what decided those on disk, so that no two makings are mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from photon.errors import UsageError
from photon.job.fingerprint import digest, shared_settings, task_fingerprint
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Making


def making_of(manifest: Manifest, facts: Mapping[str, Any], schema: pa.Schema) -> Making:
    """``facts``: the engine's, its fingerprint among them. ``schema``: of the result rows."""
    base = shared_settings(manifest, facts)
    tasks = {task.name: task_fingerprint(task, manifest, facts) for task in manifest.tasks}
    columns = digest([[field.name, str(field.type)] for field in schema])[:16]
    return Making(digest([base, tasks, columns])[:16], base, tasks, columns)


def check_base(now: Making, earlier: Iterable[Making]) -> None:
    """Raises ``UsageError``, with what differs, where the rows on disk were made with another model or other settings
    that all tasks share."""
    for making in earlier:
        for key in sorted(now.base.keys() | making.base.keys()):
            before, after = making.base.get(key), now.base.get(key)
            if before != after:
                raise UsageError(
                    f"the results so far were made with {key} {before}, and now it is {after}; set it "
                    "back, choose another output.dir, or start over with --fresh"
                )
