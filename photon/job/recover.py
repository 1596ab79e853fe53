"""What a killed process left: whole parts without a record are taken over, anything else of ours is removed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from photon.data.part_file import batches, facts_of, opened
from photon.data.writer import digest_of
from photon.errors import InputError
from photon.job.commit import Committer
from photon.job.quarantine import FOLDER as QUARANTINE
from photon.job.recall import OPEN_FOLDER
from photon.job.suspects import FOLDER as CRASHES
from photon.manifest.tasks import Task
from photon.plan.ledger import Ledger, Making, Record
from photon.plan.owner import FOLDER as OWNERS
from photon.plan.plan import Plan

log = logging.getLogger(__name__)

_PART = re.compile(r"part-(\d+)\.arrow")
_TEMPORARY = re.compile(r"\.part-(\d+)\.arrow\..*\.tmp")


def recover(
    root: Path,
    plan: Plan,
    ledger: Ledger,
    committer: Committer,
    making: Making,
    tasks: tuple[Task, ...],
    ours: Container[int],
) -> None:
    """Puts the chunks in ``ours`` in order: afterwards each of their parts has a record and each record its part. Those
    of other shards are not touched. Raises ``OutputError``."""
    for folder in (root / "data", root / OPEN_FOLDER, root / QUARANTINE):
        for path in list(folder.iterdir()) if folder.is_dir() else ():
            found = _TEMPORARY.fullmatch(path.name)
            if found and int(found[1]) in ours:
                path.unlink(missing_ok=True)
    there: set[int] = set()
    for path in sorted((root / "data").iterdir()):
        found = _PART.fullmatch(path.name)
        if found is None or (number := int(found[1])) not in ours:
            continue
        there.add(number)
        known = ledger.records.get(number)
        if known is not None and _is_of(path, known):
            continue
        record = _adopted(path, plan, number, ledger.next_generation(number), making, tasks)
        if record is not None:
            log.info("took over %s, which an earlier run finished and could not record", path.name)
            committer.record(record)
        else:
            log.warning("removed %s, which is not a whole part of this job; its rows are done again", path.name)
            path.unlink()
            ledger.forget(number)
    for number in [n for n, record in ledger.records.items() if n in ours and n not in there and record.rows]:
        log.warning("the part of chunk %d is gone; its rows are done again", number)
        ledger.forget(number)


def _is_of(path: Path, record: Record) -> bool:
    """Whether ``record`` is this part's, not that of a generation before it, which may well have the same size."""
    if record.bytes != path.stat().st_size:
        return False
    try:
        with opened(path) as reader:
            facts = facts_of(reader.schema)
    except InputError:
        return False
    return (facts.get("generation"), facts.get("making")) == (record.generation, record.making)


def sweep(root: Path) -> None:
    """Removes what killed processes left beside the parts. Only where no other shard is at work: one of these files may
    be its."""
    named = {json.loads(head.read_text(encoding="utf-8"))["units_file"] for head in root.glob("plan*.json")}
    left = [path for path in root.glob("units-*.jsonl") if path.name not in named]
    for folder in (root, root / OWNERS, root / CRASHES):
        left += folder.glob(".*.tmp")
    for path in left:
        path.unlink(missing_ok=True)


def _adopted(
    path: Path, plan: Plan, number: int, generation: int, making: Making, tasks: tuple[Task, ...]
) -> Record | None:
    """The record of a part that was renamed and not recorded; None for one that is not what the plan says."""
    try:
        with opened(path) as reader:
            facts = facts_of(reader.schema)
            if facts != {"chunk": number, "generation": generation, "making": making.id}:
                return None
            rows = [row for batch in batches(reader) for row in batch.to_pylist()]
    except InputError:
        return None
    if len(rows) != plan.chunk(number).rows or any(row["job_id"] != plan.job_id for row in rows):
        return None
    codes: dict[str, int] = {}
    for row in rows:
        if row["error_code"] is not None:
            codes[row["error_code"]] = codes.get(row["error_code"], 0) + 1
    return Record(
        chunk=number,
        generation=generation,
        rows=len(rows),
        ok=sum(row["status"] == "ok" for row in rows),
        found=sum(_found(row, tasks) for row in rows),
        requests=0,  # of another run
        codes=codes,
        bytes=path.stat().st_size,
        sha256=digest_of(path),
        making=making.id,
    )


def _found(row: dict[str, Any], tasks: tuple[Task, ...]) -> int:
    return sum(len(row[task.name].get(task.kind) or ()) for task in tasks if task.kind != "text")
