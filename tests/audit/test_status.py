"""Status: what each shard and the whole job are said to be, from what processes left in the folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from photon.audit.status import JobStatus, ShardStatus, read_job_status, watch
from photon.audit.status_table import status_text
from photon.cli import app
from photon.errors import EngineError, UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.owner import OwnerRecord
from photon.plan.plan_file import read_plan
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet
from tests.program import COMMAND

Write = Callable[..., Path]
TASKS = "[{name: cap, type: caption}]"
OUT = Path("out")


@pytest.fixture
def job(manifest_file: Write) -> Path:
    """A manifest of 22 rows, six chunks, of which row 3 fails; nothing is done yet."""
    write_parquet(Path("rows.parquet"), [None if n == 3 else png() for n in range(22)])
    return manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}")


def go(path: Path, **how: Any) -> None:
    run(load_manifest(path), engine=how.pop("engine", None) or ShufflingEngine(), **how)


def states(status: JobStatus) -> dict[str, str]:
    return {shard.shard: shard.state for shard in status.shards}


@contextmanager
def at_work(shard: Shard, **told: Any) -> Iterator[OwnerRecord]:
    """A live process, and what it has put down."""
    owner = OwnerRecord(OUT, shard)
    owner.take()
    note(shard, state="running", **told)
    try:
        yield owner
    finally:
        owner.release()


def note(shard: Shard, **told: Any) -> None:
    (OUT / "shards" / f"{shard.name}.status.json").write_text(json.dumps({"shard": shard.name, **told}), "utf-8")


def leave_owner(shard: Shard, *, pid: int, heartbeat: float, host: str | None = None) -> None:
    (OUT / "shards" / f"{shard.name}.owner.json").write_text(
        json.dumps(
            {
                "shard": shard.name,
                "host": host or socket.gethostname(),
                "pid": pid,
                "started": 0.0,
                "heartbeat": heartbeat,
                "token": "of another",
            }
        ),
        "utf-8",
    )


def test_from_plan_to_end(job: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder out"):
        read_job_status(OUT)
    OUT.mkdir()
    with pytest.raises(UsageError, match=r"out holds no plan\.json"):
        read_job_status(OUT)
    from photon.audit.prepare import prepare

    prepare(load_manifest(job))
    status = read_job_status(OUT)
    assert (status.state, status.rows, status.planned, status.chunks_planned, status.shards) == (
        "planned",
        0,
        22,
        6,
        (),
    )
    go(job, shard=Shard(1, 3))
    status = read_job_status(OUT)
    assert (status.state, status.rows, status.chunks) == ("stopped", 8, 2)
    assert states(status) == {"0/3": "open", "1/3": "finished", "2/3": "open"}
    assert [(shard.rows, shard.planned) for shard in status.shards] == [(0, 8), (8, 8), (0, 6)]
    go(job)
    status = read_job_status(OUT)
    assert (status.state, status.rows, status.ok, status.failed) == ("finished", 22, 21, 1)
    assert status.codes == {"IMAGE_MISSING": 1}
    assert states(status) == {"0/1": "finished"}, "the division of the last run"
    assert (status.rate, status.left, status.crashes, status.quarantined) == (None, None, 0, 0)


def test_a_live_shard_has_a_rate_and_an_end(job: Path) -> None:
    go(job, shard=Shard(0, 2))
    told = {"rows": 4, "failed": 1, "codes": {"X": 1}, "new_rows": 4, "seconds": 8.0, "updated": 5.0, "max_batch": 16}
    with at_work(Shard(1, 2), **told):
        status = read_job_status(OUT)
    finished, live = status.shards
    assert (status.state, states(status)) == ("running", {"0/2": "finished", "1/2": "running"})
    assert (live.rows, live.planned, live.failed, live.codes) == (4, 10, 1, {"X": 1})
    assert (live.rate, live.left, live.max_batch) == (0.5, 12.0, 16)
    assert (status.rate, status.left) == (0.5, 12.0)
    assert (status.rows, status.failed) == (12, 1), "the job's are those on disk"
    assert live.process == f"process {os.getpid()} on {socket.gethostname()}"
    assert finished.rate is None


def test_no_end_is_promised_while_a_shard_waits(job: Path) -> None:
    go(job, shard=Shard(0, 3))
    with at_work(Shard(1, 3), rows=4, new_rows=4, seconds=8.0):
        status = read_job_status(OUT)
    assert states(status) == {"0/3": "finished", "1/3": "running", "2/3": "open"}
    assert (status.rate, status.left) == (0.5, None)


@pytest.mark.parametrize(
    ("owner", "state"),
    [
        ({"heartbeat": 1e12, "pid": "dead"}, "gone"),
        ({"heartbeat": 1e12, "pid": "ours"}, "gone"),  # its number was given to us
        ({"heartbeat": 0.0, "pid": 1, "host": "elsewhere"}, "gone"),
        ({"heartbeat": 1e12, "pid": 1, "host": "elsewhere"}, "running"),
    ],
)
def test_stale_owners(job: Path, owner: dict[str, Any], state: str) -> None:
    go(job, shard=Shard(0, 2))
    if owner["pid"] == "dead":
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        owner = {**owner, "pid": ended.pid}
    if owner["pid"] == "ours":
        owner = {**owner, "pid": os.getpid()}
    note(Shard(1, 2), state="running", rows=9, failed=3, new_rows=9, seconds=3.0)
    leave_owner(Shard(1, 2), **owner)
    status = read_job_status(OUT)
    shard = status.shards[1]
    assert (shard.state, status.state) == (state, "running" if state == "running" else "stopped")
    assert (shard.rows, shard.failed) == ((9, 3) if state == "running" else (0, 0)), "what was not on disk is lost"
    assert ("gone without a word: 1/2; the same run command goes on" in status_text(status)) == (state == "gone")


def test_how_a_run_ended(job: Path) -> None:
    go(job, shard=Shard(0, 2))
    for state in ("preempted", "failed", "interrupted", "over_budget"):
        note(Shard(1, 2), state=state, rows=5)
        assert states(read_job_status(OUT))["1/2"] == state
    go(job, shard=Shard(1, 2))
    note(Shard(1, 2), state="running", rows=10)
    assert states(read_job_status(OUT))["1/2"] == "finished", "it was killed after its last chunk"


def test_crashes_and_quarantine(job: Path) -> None:
    for _ in range(3):
        with pytest.raises(EngineError):
            go(job, engine=ShufflingEngine(window=1, stop_after=0, error=EngineError("the device is lost")))
    status = read_job_status(OUT)
    assert (status.state, states(status)) == ("stopped", {"0/1": "failed"})
    assert status.crashes == 3
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, shard 0000-of-0001: EngineError: the device is lost", status.crash or ""
    )
    go(job)  # row 0, in flight alone at the last crash, is not asked any more
    status = read_job_status(OUT)
    assert (status.quarantined, status.failed) == (1, 2)
    assert "1 rows brought the engine down; run --retry-failed asks them again" in status_text(status)


def test_watch_ends_with_the_last_process(job: Path) -> None:
    go(job, shard=Shard(0, 2))
    seen: list[tuple[str, int]] = []
    with at_work(Shard(1, 2), rows=4) as owner:

        def sleep(seconds: float) -> None:
            assert seconds == 3.0
            if len(seen) == 2:
                owner.release()

        watch(OUT, lambda status: seen.append((status.state, status.shards[1].rows)), sleep)
    assert seen == [("running", 4), ("running", 4), ("stopped", 0)]


SHARD = ShardStatus("0/2", "running", 1200, 5000, 7, {}, 12.5, 304.0, 995.0, "process 41 on node-17", None)
STATUS = JobStatus(
    output="outputs/cars",
    job_id="0123456789abcdef",
    state="running",
    rows=6000,
    planned=10000,
    chunks=6,
    chunks_planned=10,
    ok=5990,
    failed=10,
    found=12345,
    codes={"IMAGE_TRUNCATED": 2, "PROMPT_NULL": 8},
    bytes=2_500_000,
    rate=12.5,
    left=304.0,
    quarantined=0,
    crashes=0,
    crash=None,
    shards=(SHARD, replace(SHARD, shard="1/2", state="finished", rows=5000, failed=3, rate=None, left=None)),
    now=1000.0,
)


def test_text() -> None:
    assert status_text(STATUS).splitlines() == [
        "outputs/cars: running, 6,000 of 10,000 rows on disk (60.0%), 6 of 10 chunks, 2.5 MB",
        "12.5 rows/s, 0:05:04 left",
        "shard  state               rows  done  rows/s     left  failed         seen  process",
        "0/2    running   1,200 of 5,000   24%    12.5  0:05:04       7  0:00:05 ago  process 41 on node-17",
        "1/2    finished  5,000 of 5,000  100%                        3  0:00:05 ago  process 41 on node-17",
        "5,990 ok, 10 failed, 12,345 objects and points found",
        "  PROMPT_NULL           8",
        "  IMAGE_TRUNCATED       2",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_text_fits_the_terminal(columns: int) -> None:
    lines = status_text(STATUS, columns).splitlines()
    assert max(map(len, lines)) <= columns
    table = [line for line in lines if line.startswith(("shard ", "0/2", "1/2"))]
    assert len(table) == 3
    assert ("process" in table[0]) == (columns >= 98)
    assert all(word in table[0] for word in ("state", "rows", "left"))


def test_many_shards_fit_the_terminal() -> None:
    shards = [replace(SHARD, shard=f"{n}/99", state="finished" if n < 40 else "open") for n in range(99)]
    shards[70] = replace(SHARD, shard="70/99")
    text = status_text(replace(STATUS, shards=tuple(shards)), 120, 24)
    lines = text.splitlines()
    assert len(lines) <= 23, "with room for the prompt"
    assert [line.split()[:2] for line in lines if line.startswith("70/99")] == [["70/99", "running"]]
    shown = sum(bool(re.match(r"\d+/99 ", line)) for line in lines)
    left_out = next(line for line in lines if line.startswith("and "))
    assert shown + sum(map(int, re.findall(r"\d+", left_out))) == 99


def test_a_plan_without_its_units(job: Path) -> None:
    """Rows and places are there; it is for this alone that units are left out."""
    go(job, limit=10)
    whole, outline = read_plan(OUT), read_plan(OUT, units=False)
    assert whole is not None
    assert outline is not None
    assert outline.units == []
    assert (outline.chunks, outline.rows) == (whole.chunks, whole.rows)
    starts = [outline.start_of(number) for number in range(outline.chunks + 1)]
    assert starts == [0, 4, 8, 10]


def test_command_line(job: Path) -> None:
    go(job)
    done = CliRunner().invoke(app, ["status", "out", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["state"], told["rows"], told["shards"][0]["state"]) == ("finished", 22, "finished")
    done = CliRunner().invoke(app, ["status", "out", "--watch"])
    assert (done.exit_code, done.stdout.count("out: finished, 22 of 22 rows on disk")) == (0, 1)
    assert CliRunner().invoke(app, ["status", "nowhere"]).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "code", "told"), [("| head -1", 0, ""), (">/dev/full", 5, "No space left on device")]
)
def test_a_watch_that_nobody_can_read_ends(job: Path, reader: str, code: int, told: str) -> None:
    go(job, shard=Shard(0, 2))
    command = shlex.join([*COMMAND, "status", "out", "--watch"])
    with at_work(Shard(1, 2), rows=4):  # to whose end the watch would last
        script = ["bash", "-c", f"set -o pipefail; {command} {reader}"]
        done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (code, bool(told))
    assert told in done.stderr


def test_an_interrupt_ends_the_watch_quietly(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(job)

    def interrupted(root: Path, show: Callable[[JobStatus], None]) -> None:
        show(read_job_status(root))
        raise KeyboardInterrupt

    monkeypatch.setattr("photon.audit.status.watch", interrupted)
    done = CliRunner().invoke(app, ["status", "out", "--watch"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("out: finished, 22 of 22 rows on disk")
