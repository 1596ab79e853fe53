"""A long run of the job in FOLDER/m.yaml, in a process of its own, so that its memory is its own and no earlier test's
freed memory can hide what grows. Run as a script: ``soak.py FOLDER``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from photon.job.progress import Silent
from photon.job.run import run
from photon.job.tally import Tally
from photon.manifest.load import load_manifest


class MemoryWatch(Silent):
    """Notes the resident set in bytes each ``every`` rows."""

    def __init__(self, every: int) -> None:
        self.resident: dict[int, int] = {}
        self._every = every

    def update(self, tally: Tally) -> None:
        if tally.rows % self._every == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.resident[tally.rows] = pages * os.sysconf("SC_PAGE_SIZE")


def soak(folder: str) -> None:
    """Prints the run's counts and the readings."""
    os.chdir(folder)
    watch = MemoryWatch(every=50)
    summary = run(load_manifest("m.yaml"), progress=watch)
    counts = {"rows": summary.rows, "failed": summary.failed, "parts": summary.parts}
    print(json.dumps({**counts, "resident": watch.resident}))


if __name__ == "__main__":
    soak(sys.argv[1])
