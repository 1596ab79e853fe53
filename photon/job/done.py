"""A job that has nothing left to do: seen from what is on disk, without a model."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from photon.data.writer import part_number
from photon.job.folder import OutputFolder
from photon.job.planning import Planned
from photon.job.recall import OPEN_FOLDER
from photon.job.record import RunRecord
from photon.job.summary import Summary, done_already
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Ledger
from photon.plan.shard import Shard

log = logging.getLogger(__name__)


def nothing_to_do(
    manifest: Manifest, folder: OutputFolder, planned: Planned, shard: Shard, retry: Collection[str] | None
) -> Summary | None:
    """The summary of a shard whose rows are all done, by the same manifest and tidily; else None. Only files that keep
    their names and change their content are not noticed: a model's, which loading it would show."""
    if planned.is_new or planned.growth:
        return None
    record, ledger, plan = RunRecord.read(folder.record), Ledger.read(folder.root), planned.plan
    making = ledger.makings.get(record.get("making", ""))
    if making is None or _wording(record.get("manifest", {})) != _wording(manifest.model_dump(mode="json")):
        return None
    if shard.count == 1 and record.get("state") != "finished":
        return None
    numbers = sorted(ledger.records) if plan.is_endless else shard.of(plan.chunks)
    records = [ledger.records[number] for number in numbers if number in ledger.records]
    if len(records) < len(numbers) or (plan.is_endless and not any(r.last for r in records)):
        return None
    if any(r.rows and (r.making != making.id or not folder.holds(r)) for r in records):
        return None
    if _left_behind(folder, numbers) or (retry is not None and any(r.failed for r in records)):
        return None
    return done_already(manifest, records, folder, record.get("model") or {})


def warn_of_idle_codes(folder: OutputFolder, retry: Collection[str] | None) -> None:
    """A code that no row failed with may be a slip of the pen, or simply good news."""
    if not retry:
        return
    failed = {code for record in Ledger.read(folder.root).records.values() for code in record.codes}
    for code in sorted(set(retry) - failed):
        told = f"those that did have {', '.join(sorted(failed))}" if failed else "none has failed at all"
        log.warning("no row failed with %s, so none is asked again for it; %s", code, told)


def _wording(manifest: dict[str, Any]) -> dict[str, Any]:
    """All that it says but the limit: that is settled with the plan."""
    return {**manifest, "input": {**manifest.get("input", {}), "limit": None}}


def _left_behind(folder: OutputFolder, numbers: Collection[int]) -> bool:
    """Whether a run that was killed left something to be put in order."""
    unfinished = folder.root / OPEN_FOLDER
    if unfinished.is_dir() and any(part_number(path.name) in numbers for path in unfinished.iterdir()):
        return True
    return any(path.name.startswith(".") for path in folder.data.iterdir())
