"""Where a job stands: what was planned, what is committed, and who is at work on it."""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from photon.errors import UsageError
from photon.plan.ledger import Ledger, Record
from photon.plan.owner import Owner, owners
from photon.plan.plan import Plan
from photon.plan.plan_file import head_name, read_plan


@dataclass(frozen=True)
class Standing:
    """``owners`` are all that have a record in the folder, ``now`` is when it was looked at."""

    root: Path
    plan: Plan
    ledger: Ledger
    owners: tuple[Owner, ...]
    now: float

    @classmethod
    def read(cls, root: Path, *, units: bool = True) -> Standing:
        """Without the plan's ``units``, its chunks are not placed in the input. Raises ``UsageError`` where there is no
        job in ``root``, ``OutputError`` where its files cannot be read."""
        root = root.expanduser()
        if not root.is_dir():
            raise UsageError(f"there is no folder {root}; give the output.dir of a job")
        found = tuple(owners(root))  # first: who ends meanwhile has put everything down
        plan = read_plan(root, units=units)
        if plan is None:
            raise UsageError(f"{root} holds no {head_name(0)}; give the output.dir of a job that was planned or run")
        return cls(root, plan, Ledger.read(root), found, time.time())

    @cached_property
    def live(self) -> tuple[Owner, ...]:
        """Those at work."""
        return tuple(owner for owner in self.owners if not owner.is_stale(self.now))

    @cached_property
    def records(self) -> list[Record]:
        """Of committed chunks with rows, in the order of the plan."""
        return [record for _, record in sorted(self.ledger.records.items()) if record.rows]

    def records_of(self, numbers: range) -> list[Record]:
        """``records`` of the chunks with these ``numbers``, which follow each other."""
        start, stop = (bisect_left(self.records, n, key=attrgetter("chunk")) for n in (numbers.start, numbers.stop))
        return self.records[start:stop]

    @property
    def rows(self) -> int:
        """Rows committed."""
        return sum(record.rows for record in self.records)

    @property
    def chunks(self) -> int | None:
        """All that have to be committed; None for an input whose end nobody has seen yet."""
        if not self.plan.is_endless:
            return self.plan.chunks
        ends = [record.chunk + (record.rows > 0) for record in self.ledger.records.values() if record.last]
        return max(ends, default=None)

    @property
    def makings(self) -> int:
        """How many manifests made what is committed, as far as they differ in what decides answers."""
        return len({record.making for record in self.records})

    @property
    def left(self) -> str | None:
        """What a person is told of what is still to do; None where the job is finished."""
        if self.live:
            return f"{self.live[0].told} is at work on it"
        chunks = self.chunks
        if chunks is None:
            return "the end of its input has not been reached"
        missing = chunks - len(self.records)
        if missing > 0:
            return f"{missing:,} of {chunks:,} chunks are still to do"
        return None if self.makings <= 1 else "some of its rows were answered by an earlier manifest"
