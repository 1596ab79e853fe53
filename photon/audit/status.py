"""How far a job is, shard by shard, from what its processes put down. Opens no part and loads nothing."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from photon.audit.standing import Standing
from photon.job.assemble import POISON
from photon.job.status_file import read_status
from photon.job.suspects import FOLDER as CRASHES
from photon.plan.ledger import Counts
from photon.plan.owner import FOLDER, Owner
from photon.plan.shard import Shard

#: Seconds between two looks.
EVERY = 3.0
_NAMED = re.compile(r"(\d+)-of-(\d+)\.(?:owner|status)\.json")


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """``state``: "running", as its last run ended ("finished", "over_budget", "preempted", "interrupted", "failed"),
    "gone" where a process that was at work is not there any more, "open" where none was yet.

    ``rows`` are those on disk or, of a live process, finished; ``planned`` is None for an input that does not know its
    end. ``rate`` is in rows a second, ``left`` in seconds, for a live process; ``updated`` is seconds since the epoch.
    """

    shard: str
    state: str
    rows: int
    planned: int | None
    failed: int
    codes: dict[str, int]
    rate: float | None = None
    left: float | None = None
    updated: float | None = None
    process: str | None = None
    max_batch: int | None = None


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``state``: "running", "finished", "stopped" or, before any run, "planned". Counts are those of the ledger, so of
    whole chunks. ``quarantined`` rows brought the engine down; ``crashes`` are reports, ``crash`` is the last one."""

    output: str
    job_id: str
    state: str
    rows: int
    planned: int | None
    chunks: int
    chunks_planned: int | None
    ok: int
    failed: int
    found: int
    codes: dict[str, int]
    bytes: int
    rate: float | None
    left: float | None
    quarantined: int
    crashes: int
    crash: str | None
    shards: tuple[ShardStatus, ...]
    now: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def read_job_status(root: Path) -> JobStatus:
    """Raises ``UsageError`` where there is no job in ``root``, ``OutputError`` for files that cannot be read."""
    standing = Standing.read(root, units=False)
    shards = tuple(_shards(standing))
    counts = Counts.of(standing.records)
    running = [shard for shard in shards if shard.state == "running"]
    crashes = sorted((standing.root / CRASHES).glob("*.json"))
    waiting = any(shard.state not in ("running", "finished") for shard in shards)
    times = [shard.left for shard in running]
    known = bool(times) and not waiting and None not in times
    return JobStatus(
        output=str(standing.root),
        job_id=standing.plan.job_id,
        state=_state(standing, running),
        rows=counts.rows,
        planned=standing.plan.rows,
        chunks=len(standing.records),
        chunks_planned=standing.chunks,
        ok=counts.ok,
        failed=counts.failed,
        found=counts.found,
        codes=counts.codes,
        bytes=sum(record.bytes for record in standing.records),
        rate=sum(shard.rate or 0.0 for shard in running) if running else None,
        left=max(time for time in times if time is not None) if known else None,
        quarantined=counts.codes.get(POISON, 0),
        crashes=len(crashes),
        crash=_error_of(crashes[-1]) if crashes else None,
        shards=shards,
        now=standing.now,
    )


def watch(
    root: Path, show: Callable[[JobStatus], None], sleep: Callable[[float], None] = time.sleep, every: float = EVERY
) -> None:
    """Shows the status again and again, until no process is at work. Raises like ``read_job_status``."""
    while True:
        status = read_job_status(root)
        show(status)
        if status.state != "running":
            return
        sleep(every)


def _state(standing: Standing, running: list[ShardStatus]) -> str:
    if running:
        return "running"
    if standing.left is None:
        return "finished"
    return "stopped" if standing.records or standing.owners or _divisions(standing.root) else "planned"


def _shards(standing: Standing) -> Iterator[ShardStatus]:
    """Those of the newest division; none before any run."""
    divisions = _divisions(standing.root)
    if not divisions:
        return
    live = [Shard.parse(owner.shard.replace("-of-", "/")).count for owner in standing.live]
    count = live[0] if live else max(divisions, key=lambda count: divisions[count])
    owners = {owner.shard: owner for owner in standing.owners}
    for number in range(count):
        shard = Shard(number, count)
        yield _shard(standing, shard, owners.get(shard.name))


def _divisions(root: Path) -> dict[int, float]:
    """Into how many shards the job was divided, and when a process of such a shard last put something down."""
    found: dict[int, float] = {}
    folder = root / FOLDER
    for entry in os.scandir(folder) if folder.is_dir() else ():
        named = _NAMED.fullmatch(entry.name)
        if named is None:
            continue
        try:
            found[int(named[2])] = max(found.get(int(named[2]), 0.0), entry.stat().st_mtime)
        except FileNotFoundError:  # its process has just ended
            continue
    return found


def _shard(standing: Standing, shard: Shard, owner: Owner | None) -> ShardStatus:
    told, plan = read_status(standing.root, shard), standing.plan
    numbers = shard.of(plan.chunks)
    counts = Counts.of(standing.records_of(numbers))
    planned = None if plan.is_endless else plan.start_of(numbers.stop) - plan.start_of(numbers.start)
    live = owner is not None and not owner.is_stale(standing.now)
    whole = standing.left is None or (planned is not None and counts.rows == planned)
    rows, failed, codes = counts.rows, counts.failed, counts.codes
    rate = left = None
    if live and told.get("state") == "running":
        rows, failed, codes = told.get("rows", rows), told.get("failed", failed), told.get("codes", codes)
        seconds, new = told.get("seconds", 0.0), told.get("new_rows", 0)
        rate = new / seconds if seconds > 0 and new else None
        left = (planned - rows) / rate if rate and planned is not None else None
    process = owner.told if owner is not None else None
    if process is None and "pid" in told:
        process = f"process {told['pid']} on {told.get('host')}"
    return ShardStatus(
        shard=f"{shard.number}/{shard.count}",
        state="running" if live else _ended(told.get("state"), owner, whole),
        rows=rows,
        planned=planned,
        failed=failed,
        codes=codes,
        rate=rate,
        left=left,
        updated=max((time for time in (told.get("updated"), owner and owner.heartbeat) if time), default=None),
        process=process,
        max_batch=told.get("max_batch"),
    )


def _ended(state: str | None, owner: Owner | None, whole: bool) -> str:
    if state == "running" or owner is not None:  # it could not put down how it ended
        return "finished" if whole else "gone"
    if state is None:
        return "finished" if whole else "open"
    return state


def _error_of(report: Path) -> str:
    try:
        told = json.loads(report.read_text(encoding="utf-8"))
        return f"{told['time']}, shard {told['shard']}: {told['error']}"
    except (OSError, ValueError, KeyError, TypeError):
        return report.name
