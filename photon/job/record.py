"""run.json: what made the results beside it. Written when a run starts and again when it ends, each time whole."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from photon.data.disk import sync_folder
from photon.engine.statistics import Statistics
from photon.job.fingerprint import digest
from photon.manifest.manifest import Manifest

SCHEMA_VERSION = 1
State: TypeAlias = Literal["running", "finished", "over_budget", "interrupted", "failed"]
_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "datasets", "pyarrow", "pillow", "numpy")


@dataclass(slots=True)
class RunRecord:
    """``facts`` are the model's own; times are seconds since the epoch, wall time in seconds."""

    manifest: Manifest
    facts: dict[str, object]
    fingerprints: dict[str, str]
    job_id: str = field(default_factory=lambda: secrets.token_hex(8))
    started: float = field(default_factory=time.time)

    def write(
        self,
        path: Path,
        state: State,
        counts: dict[str, Any] | None = None,
        error: str | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        """Replaces ``path`` in one step: a reader sees the old record or the new one. Raises ``OSError``."""
        text = json.dumps(self._content(state, counts or {}, error, statistics), indent=2, default=str) + "\n"
        beside = path.with_name(f".{path.name}.tmp")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)

    def _content(
        self, state: State, counts: dict[str, Any], error: str | None, statistics: Statistics | None
    ) -> dict[str, Any]:
        resolved = self.manifest.model_dump(mode="json")
        return {
            "photon_batch": version("photon-batch"),
            "schema_version": SCHEMA_VERSION,
            "job_id": self.job_id,
            "state": state,
            "error": error,
            "counts": counts,
            "engine": None if statistics is None else statistics.as_dict(),
            "started": self.started,
            "wall_time_s": 0.0 if state == "running" else round(time.time() - self.started, 3),
            "seed": self.manifest.run.seed,
            "model": self.facts,
            "task_fp": self.fingerprints,
            "manifest": resolved,
            "manifest_sha256": digest(resolved),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
            "platform": platform.platform(),
        }


def version(package: str) -> str | None:
    """The installed version, None when the package is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
