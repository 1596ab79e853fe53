"""What a killed process left: whole parts without a record are taken over, anything else of ours is removed."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from photon.data.disk import blaming
from photon.data.part_file import batches, facts_of, opened
from photon.data.writer import digest_of, part_number
from photon.errors import InputError
from photon.job.commit import Committer
from photon.job.quarantine import FOLDER as QUARANTINE
from photon.job.quarantine import Quarantine
from photon.job.recall import OPEN_FOLDER
from photon.job.suspects import FOLDER as CRASHES
from photon.manifest.tasks import Task
from photon.plan.ledger import Ledger, Making, Record, part_facts
from photon.plan.owner import FOLDER as OWNERS
from photon.plan.plan import Plan
from photon.plan.shard import Shard

log = logging.getLogger(__name__)

#: Seconds after which nobody is at work on a temporary file any more.
_OLD = 3600.0
_TEMPORARY = re.compile(r"\.part-(\d+)\.arrow\..*\.tmp")


class Recovery:
    """Puts the chunks of one shard in order, before a run and after it."""

    def __init__(self, root: Path, ours: Container[int], committer: Committer, quarantine: Quarantine) -> None:
        self._root, self._ours = root, ours
        self._committer, self._quarantine = committer, quarantine

    def before(self, plan: Plan, ledger: Ledger, making: Making, tasks: tuple[Task, ...]) -> None:
        """Afterwards each part has a record and each record its part, and what is set aside is theirs. Raises
        ``OutputError``."""
        with blaming(self._root, "put in order"):
            self._remove_temporary()
            there = {}
            for number, path in self._parts("data"):
                there[number] = path
                known = ledger.records.get(number)
                if known is not None and _is_of(path, known):
                    continue
                record = _adopted(path, plan, number, ledger.next_generation(number), making, tasks)
                if record is not None:
                    log.info("took over %s, which an earlier run finished and could not record", path.name)
                    self._committer.record(record)
                else:
                    log.warning("removed %s, which is not a whole part of this job; its rows are done again", path.name)
                    path.unlink()
                    ledger.forget(number)
                    del there[number]
            for number in [n for n, r in ledger.records.items() if n in self._ours and n not in there and r.rows]:
                log.warning("the part of chunk %d is gone; its rows are done again", number)
                ledger.forget(number)
            self._mend_quarantine(ledger, there)
            for number, path in self._parts(OPEN_FOLDER):
                if _facts(path).get("generation") != ledger.next_generation(number):
                    path.unlink()  # of a chunk that was finished since

    def after(self) -> None:
        """All chunks are as they should be, so nothing unfinished counts any more."""
        with blaming(self._root, "put in order"):
            for _, path in self._parts(OPEN_FOLDER):
                path.unlink()

    def _parts(self, folder: str) -> list[tuple[int, Path]]:
        place = self._root / folder
        numbered = ((part_number(path.name), path) for path in (sorted(place.iterdir()) if place.is_dir() else ()))
        return [(number, path) for number, path in numbered if number is not None and number in self._ours]

    def _remove_temporary(self) -> None:
        for folder in ("data", OPEN_FOLDER, QUARANTINE):
            place = self._root / folder
            for path in list(place.iterdir()) if place.is_dir() else ():
                found = _TEMPORARY.fullmatch(path.name)
                if found and int(found[1]) in self._ours:
                    path.unlink(missing_ok=True)

    def _mend_quarantine(self, ledger: Ledger, parts: Mapping[int, Path]) -> None:
        for number, path in parts.items():
            record = ledger.records[number]
            facts = part_facts(number, record.generation, record.making)
            if not self._quarantine.agrees(number, record.failed, facts):
                with opened(path) as reader:
                    rows = [row for batch in batches(reader) for row in batch.to_pylist()]
                self._quarantine.restore(number, rows, facts)


def _facts(path: Path) -> dict[str, Any]:
    try:
        with opened(path) as reader:
            return facts_of(reader.schema)
    except InputError:
        return {}


def _is_of(path: Path, record: Record) -> bool:
    """Whether ``record`` is this part's, not that of a generation before it, which may well have the same size."""
    if record.bytes != path.stat().st_size:
        return False
    facts = _facts(path)
    return (facts.get("generation"), facts.get("making")) == (record.generation, record.making)


def sweep(root: Path, shard: Shard) -> None:
    """Removes what killed processes left beside the parts. What is no shard's own may be another process's that is just
    making it, unless it is old. Raises ``OutputError``."""
    old = time.time() - _OLD
    with blaming(root, "put in order"):
        named = {json.loads(head.read_text(encoding="utf-8"))["units_file"] for head in root.glob("plan*.json")}
        left = [path for path in root.glob("units-*.jsonl") if path.name not in named]
        for folder in (root, root / OWNERS, root / CRASHES):
            left += [*folder.glob(".*.tmp"), *folder.glob(".*.stale")]
        for path in left:
            ours = path.name.startswith(f".{shard.name}.") or (shard.count == 1 and path.suffix != ".jsonl")
            with suppress(FileNotFoundError):
                if ours or path.stat().st_mtime < old:
                    path.unlink()


def _adopted(
    path: Path, plan: Plan, number: int, generation: int, making: Making, tasks: tuple[Task, ...]
) -> Record | None:
    """The record of a part that was renamed and not recorded; None for one that is not what the plan says."""
    try:
        with opened(path) as reader:
            facts = facts_of(reader.schema)
            if facts != part_facts(number, generation, making.id):
                return None
            rows = [row for batch in batches(reader) for row in batch.to_pylist()]
    except InputError:
        return None
    if len(rows) != plan.chunk(number).rows or any(row["job_id"] != plan.job_id for row in rows):
        return None
    return Record(
        chunk=number,
        generation=generation,
        rows=len(rows),
        ok=sum(row["status"] == "ok" for row in rows),
        found=sum(_found(row, tasks) for row in rows),
        requests=0,  # of another run
        codes=dict(Counter(row["error_code"] for row in rows if row["error_code"] is not None)),
        bytes=path.stat().st_size,
        sha256=digest_of(path),
        making=making.id,
    )


def _found(row: dict[str, Any], tasks: tuple[Task, ...]) -> int:
    return sum(len(row[task.name].get(task.kind) or ()) for task in tasks if task.kind != "text")
