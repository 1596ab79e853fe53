"""One shard's status on disk: how far it is and how it ended, for whoever looks on."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from photon.data.disk import replace
from photon.job.progress import Progress
from photon.job.tally import Tally
from photon.plan.owner import FOLDER
from photon.plan.shard import Shard

#: Seconds between two writings under way.
EVERY = 5.0


class StatusFile:
    """shards/NAME.status.json, replaced whole. Also a ``Progress`` that passes on to ``shown``."""

    def __init__(self, root: Path, shard: Shard, shown: Progress) -> None:
        self._path = root / FOLDER / f"{shard.name}.status.json"
        self._shown = shown
        self._facts: dict[str, Any] = {"shard": shard.name, "host": socket.gethostname(), "pid": os.getpid()}
        self._counts: Callable[[], dict[str, Any]] = dict
        self._written = 0.0

    def note(self, **facts: Any) -> None:
        """What the next writing will say as well."""
        self._facts.update(facts)

    def count_by(self, counts: Callable[[], dict[str, Any]]) -> None:
        self._counts = counts

    def write(self, state: str) -> None:
        """Never fails the run: a disk that is full is the writer's to tell."""
        self._written = time.monotonic()
        told = {"state": state, "updated": time.time(), **self._facts, **self._counts()}
        try:
            replace(self._path, json.dumps(told, indent=1) + "\n")
        except OSError:
            return

    def start(self, total: int | None) -> None:
        self.note(to_do=total, started=time.time())
        self._shown.start(total)

    def update(self, tally: Tally) -> None:
        if time.monotonic() - self._written >= EVERY:
            self.write("running")
        self._shown.update(tally)

    def close(self) -> None:
        self._shown.close()


def read_status(root: Path, shard: Shard) -> dict[str, Any]:
    """What a shard's last run noted; empty where none did, or not to be read."""
    try:
        told = json.loads((root / FOLDER / f"{shard.name}.status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
