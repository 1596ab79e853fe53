"""run.json: what made the results beside it. Written when a run starts and again when it ends, each time whole."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from photon.data.disk import replace
from photon.engine.statistics import Statistics
from photon.job.fingerprint import digest
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Counts, Ledger, Making
from photon.plan.plan import Plan
from photon.plan.shard import Shard

SCHEMA_VERSION = 2
RUN_JSON = "run.json"
State: TypeAlias = Literal["running", "finished", "over_budget", "interrupted", "failed", "preempted"]
_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "datasets", "pyarrow", "pillow", "numpy")


@dataclass(slots=True)
class RunRecord:
    """``facts`` are the model's own; times are seconds since the epoch, wall time in seconds. Shards write it in turn,
    each with its own counts beside those of the whole job."""

    manifest: Manifest
    facts: dict[str, object]
    making: Making
    plan: Plan
    shard: Shard
    started: float = field(default_factory=time.time)

    def write(
        self,
        root: Path,
        state: State,
        counts: dict[str, Any],
        error: str | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        """Replaces run.json in ``root`` in one step: a reader sees the old record or the new one. Raises
        ``OSError``."""
        while True:
            ledger = Ledger.read(root)
            content = self._content(self._state(state, ledger), ledger, counts, error, statistics)
            replace(root / RUN_JSON, json.dumps(content, indent=2, default=str) + "\n")
            # Of two shards that end together, neither may leave a record that knows nothing of the other's rows.
            if self.shard.count == 1 or Ledger.read(root).records.keys() == ledger.records.keys():
                return

    @staticmethod
    def read(path: Path) -> dict[str, Any]:
        """What an earlier run wrote; empty where none did, or not to be read."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _state(self, state: State, ledger: Ledger) -> State:
        """A shard that has finished says so of the job when the others have, too."""
        current = sum(record.making == self.making.id for record in ledger.records.values())
        if state != "finished" or self.plan.is_endless or current >= self.plan.chunks:
            return state
        return "running"

    def _content(
        self, state: State, ledger: Ledger, counts: dict[str, Any], error: str | None, statistics: Statistics | None
    ) -> dict[str, Any]:
        resolved = self.manifest.model_dump(mode="json")
        whole = Counts.of(ledger.records.values())
        return {
            "photon_batch": version("photon-batch"),
            "schema_version": SCHEMA_VERSION,
            "job_id": self.plan.job_id,
            "state": state,
            "error": error,
            "counts": {
                "rows": whole.rows,
                "ok": whole.ok,
                "failed": whole.failed,
                "found": whole.found,
                "codes": whole.codes,
                "parts": sum(record.rows > 0 for record in ledger.records.values()),
                "planned": self.plan.rows,
            },
            "shard": {"number": self.shard.number, "count": self.shard.count, **counts},
            "plan": {"chunk_rows": self.plan.chunk_rows, "chunks": None if self.plan.is_endless else self.plan.chunks},
            "engine": None if statistics is None else statistics.as_dict(),
            "started": self.started,
            "wall_time_s": 0.0 if state == "running" else round(time.time() - self.started, 3),
            "started_in": os.getcwd(),
            "seed": self.manifest.run.seed,
            "model": self.facts,
            "making": self.making.id,
            "task_fp": self.making.tasks,
            "manifest": resolved,
            "manifest_sha256": digest(resolved),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
            "platform": platform.platform(),
        }


@functools.cache  # to find it out takes a millisecond
def version(package: str) -> str | None:
    """The installed version, None when the package is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
