"""The commit of a chunk: its quarantine, then its part, then its record. A kill between any two of these costs nothing:
the next run takes over a whole part that has no record, or does the chunk again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from photon.data.writer import PartWriter, part_name
from photon.errors import UsageError
from photon.job.making import check_base
from photon.job.outcome import Outcome
from photon.job.quarantine import Quarantine
from photon.job.recall import OPEN_FOLDER
from photon.plan.ledger import Ledger, LedgerFile, Making, Record, part_facts
from photon.plan.owner import OwnerRecord
from photon.plan.plan import Chunk


class Committer:
    """Writes one shard's chunks. ``ledger`` is kept up to date with what is written."""

    def __init__(
        self,
        root: Path,
        parts: PartWriter,
        unfinished: PartWriter,
        quarantine: Quarantine,
        file: LedgerFile,
        ledger: Ledger,
        making: Making,
        owner: OwnerRecord,
    ) -> None:
        """``parts`` writes into the data folder, ``unfinished`` into that of chunks that are not whole."""
        self._root, self._open_folder = root, root / OPEN_FOLDER
        self._checked = False
        self._parts, self._unfinished, self._quarantine = parts, unfinished, quarantine
        self._file, self._ledger, self._making, self._owner = file, ledger, making, owner

    def write(self, chunk: Chunk, outcomes: Sequence[Outcome], *, last: bool = False) -> Record:
        """Commits a whole chunk, for good when this returns. ``last``: the source ended with it. Raises
        ``OutputError`` where the system refuses, ``UsageError`` when another process has taken the shard."""
        self._check()
        facts = self.facts(chunk.number)
        generation = self._ledger.next_generation(chunk.number)
        before = self._ledger.records.get(chunk.number)
        self._quarantine.write(chunk.number, outcomes, facts)
        part = self._parts.write(chunk.number, [outcome.cells for outcome in outcomes], facts)
        record = Record(
            chunk=chunk.number,
            generation=generation,
            rows=len(outcomes),
            ok=sum(outcome.failure is None for outcome in outcomes),
            found=sum(outcome.found for outcome in outcomes),
            requests=sum(outcome.requests for outcome in outcomes),
            codes=dict(Counter(outcome.failure.code for outcome in outcomes if outcome.failure is not None)),
            bytes=part.bytes,
            sha256=part.sha256,
            making=self._making.id,
            last=last or (before is not None and before.last),
        )
        self.record(record)
        (self._open_folder / part_name(chunk.number)).unlink(missing_ok=True)
        return record

    def record(self, record: Record) -> None:
        """Notes a chunk whose part is there."""
        self._file.commit(record, self._making)
        self._ledger.add(record, self._making)

    def keep(self, chunk: Chunk, outcomes: Sequence[Outcome]) -> None:
        """Puts down the finished rows of a chunk that is not whole, for the next run to go on from."""
        self._check()
        self._unfinished.write(chunk.number, [outcome.cells for outcome in outcomes], self.facts(chunk.number))

    def facts(self, chunk: int) -> dict[str, object]:
        """Of the part that would be written next."""
        return part_facts(chunk, self._ledger.next_generation(chunk), self._making.id)

    @property
    def is_lost(self) -> bool:
        """Whether the shard is another process's now."""
        return self._owner.is_lost

    def _check(self) -> None:
        if self.is_lost:
            raise UsageError("another process has taken over this shard; this one has to end")
        if not self._checked:  # shards that began together saw nothing of each other
            check_base(self._making, Ledger.read(self._root).makings.values())
            self._checked = True
