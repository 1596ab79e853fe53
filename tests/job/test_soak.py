"""A long run: every row once, and memory that stays flat."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from photon.job.load import load_manifest
from photon.job.progress import Silent
from photon.job.run import run
from photon.job.tally import Tally
from tests.job.inputs import png, write_parquet

ROWS = 20_000


class MemoryWatch(Silent):
    """Notes the resident set, in MiB, each thousand rows."""

    def __init__(self) -> None:
        self.resident: list[float] = []

    def update(self, tally: Tally) -> None:
        if tally.rows % 1000 == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.resident.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


@pytest.mark.slow
def test_memory_is_flat_over_many_rows(manifest_file: Callable[..., Path]) -> None:
    write_parquet(Path("rows.parquet"), [png(), None] * (ROWS // 2))
    watch = MemoryWatch()
    path = manifest_file(output="{dir: out, chunk_rows: 500}", errors="{max_failure_rate: 0.5}")
    summary = run(load_manifest(path), progress=watch)
    assert (summary.rows, summary.failed, summary.parts) == (ROWS, ROWS // 2, ROWS // 500)
    assert max(watch.resident) - watch.resident[4] < 64, watch.resident
    ids = ds.dataset("out/data", format="ipc").to_table(columns=["row_id"])["row_id"].to_pylist()
    assert ids == [f"row{i}" for i in range(ROWS)]
