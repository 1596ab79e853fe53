"""A job under way: its chunks through the engine and onto disk, however often the engine has to start again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from photon.core import Result
from photon.data.row import Source
from photon.engine.load import AnyEngine
from photon.engine.record import Listener
from photon.errors import EngineError, InputError, PhotonError
from photon.job.assemble import POISON, Assembler
from photon.job.chunks import Chunks
from photon.job.commit import Committer
from photon.job.flow import Flow
from photon.job.outbox import Outbox
from photon.job.outcome import Outcome
from photon.job.questions import Questions
from photon.job.reading import PlannedRow, endless_rows, planned_rows
from photon.job.recall import Recall
from photon.job.status_file import StatusFile
from photon.job.stop import Stop
from photon.job.suspects import Suspects, report_crash
from photon.job.tally import Tally
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Counts, Ledger, Making, Record
from photon.plan.plan import ENDLESS, Chunk, Plan
from photon.plan.shard import Shard

log = logging.getLogger(__name__)

#: How a pass over the chunks ended, when no error did.
Ending: TypeAlias = Literal["finished", "preempted", "over_budget"]


@dataclass(slots=True)
class Job:
    """One shard's work. ``retry``: the codes of failed rows that are asked again, all where it is empty, none where it
    is None."""

    root: Path
    manifest: Manifest
    plan: Plan
    source: Source
    shard: Shard
    making: Making
    ledger: Ledger
    committer: Committer
    status: StatusFile
    stop: Stop
    retry: Collection[str] | None = None
    fail_fast: bool = False
    tally: Tally = field(default_factory=Tally)

    planned: int | None = field(init=False)
    """The shard's rows, None where only reading tells."""
    _generations: dict[int, int] = field(init=False)
    _done: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.planned = self._planned()
        self._generations = {number: record.generation for number, record in self.ledger.records.items()}
        self._done = self._counted([])
        self.status.count_by(self.counts)

    def work(self, engine: AnyEngine, trace: Listener | None) -> Ending:
        """One pass of ``engine`` over what is still to do. Whatever ends it early, whole chunks are on disk then, and
        the finished rows of the others too."""
        todo = self.todo()
        self._done = self._counted(todo)
        self.tally = Tally(requests=self.tally.requests, started=self.tally.started)
        outbox = Outbox(self.committer)
        flow = self._flow(outbox)
        self.stop.on_ask = flow.hold
        results = self._answers(engine, flow, todo, trace)
        try:
            ending = self._drive(flow, results)
            outbox.close()
            self.stop.settle()
        except BaseException as error:
            flow.stop()
            self.stop.settle()
            self._save_what_is_whole(flow, outbox, error)
            if isinstance(error, KeyboardInterrupt) and self.tally.rows:
                error.add_note("what was finished is on disk; the same command goes on")
            if isinstance(error, EngineError) or not isinstance(error, PhotonError):
                self._report(error, flow, engine)
            with suppress(Exception):  # the error at hand says more than a second one
                results.close()
            raise
        results.close()
        self._keep_rest(flow, ended=ending == "finished")
        return ending

    def todo(self) -> Sequence[Chunk]:
        """The shard's chunks that are not as they should be; of a source without a known end the first such alone."""
        if not self.plan.is_endless:
            numbers = self.shard.of(self.plan.chunks)
            return [self.plan.chunk(number) for number in numbers if self._is_open(number)]
        if any(record.last for record in self.ledger.records.values()):
            return [self.plan.chunk(number) for number in sorted(self.ledger.records) if self._is_open(number)]
        first = next((number for number in range(self.plan.chunks) if self._is_open(number)), None)
        return [] if first is None else [self.plan.chunk(first)]  # or all are there, and only the end is not noted

    def counts(self) -> dict[str, Any]:
        """Of the shard's rows, those of this run included that no whole chunk holds yet."""
        done, tally = self._done, self.tally
        codes = Counter(done.codes)
        codes.update({code.code: code.count for code in tally.codes.values()})
        return {
            "rows": done.rows + tally.rows,
            "ok": done.ok + tally.ok,
            "failed": done.failed + tally.failed,
            "found": done.found + tally.found,
            "codes": dict(codes),
            "requests": tally.requests,
            "odd_orientations": tally.odd_orientations,
            "new_rows": tally.rows,
            "seconds": round(tally.seconds, 3),
            "planned": self.planned,
        }

    def _planned(self) -> int | None:
        if self.plan.is_endless:
            return None
        numbers = self.shard.of(self.plan.chunks)
        if not numbers:
            return 0
        first, last = self.plan.chunk(numbers[0]), self.plan.chunk(numbers[-1])
        return last.place + last.rows - first.place

    def records(self) -> list[Record]:
        """The shard's, in order."""
        numbers = self.shard.of(self.plan.chunks)
        return [record for number, record in sorted(self.ledger.records.items()) if number in numbers]

    def _is_open(self, number: int) -> bool:
        record = self.ledger.records.get(number)
        if record is None:
            return True
        if not record.rows:  # the end of a source, nothing more
            return False
        return record.making != self.making.id or self._is_retried(record)

    def _is_retried(self, record: Record) -> bool:
        if self.retry is None or record.generation > self._generations.get(record.chunk, -1):
            return False  # that of this run: once is enough
        return bool(record.failed) and (not self.retry or any(code in self.retry for code in record.codes))

    def _counted(self, todo: Sequence[Chunk]) -> Counts:
        """Of the shard's chunks that are done and stay."""
        again = {chunk.number for chunk in todo}
        return Counts.of([record for record in self.records() if record.chunk not in again])

    def _drive(self, flow: Flow, results: Iterator[Result]) -> Ending:
        if self.stop.asked:
            flow.hold()
        told = False
        for result in results:
            flow.take(result)
            if self._is_lost():
                break
            if self.stop.asked and not told:
                told = True
                log.warning("%s: finishing what is in flight; once more ends at once", self.stop.reason)
        if self._is_lost():
            flow.stop()
            return "over_budget"
        flow.finish()
        return "finished" if flow.is_read else "preempted"

    def _is_lost(self) -> bool:
        """Whether more rows failed than may fail in all, with rows left to come."""
        failed = self._done.failed + self.tally.failed
        if not failed:
            return False
        if self.fail_fast and self.tally.failed:
            return True
        rows = self._done.rows + self.tally.rows
        errors, planned = self.manifest.errors, self.planned
        if planned is None or not errors.min_rows <= rows < planned:
            return False
        return failed > errors.max_failure_rate * planned

    def _answers(
        self, engine: AnyEngine, flow: Flow, todo: Sequence[Chunk], trace: Listener | None
    ) -> Generator[Result, None, None]:
        """The engine's results, as a generator that closes the engine's own when it is left early."""
        yield from engine.run(flow.requests(self._rows(todo)), trace=trace)

    def _rows(self, todo: Sequence[Chunk]) -> Iterator[PlannedRow]:
        recall = Recall(self.root, self.making.tasks, self.retry)
        if not todo:
            return iter(())
        if self.plan.is_endless and not any(record.last for record in self.ledger.records.values()):
            done = frozenset(number for number in self.ledger.records if not self._is_open(number))
            limit = self.plan.spans[0].rows if self.plan.spans[0].rows < ENDLESS else None
            return endless_rows(self.source, self.plan, todo[0].number, done, recall, limit)
        return planned_rows(self.source, todo, recall)

    def _flow(self, outbox: Outbox) -> Flow:
        tasks, manifest = self.manifest.tasks, self.manifest
        suspects = Suspects.read(self.root)
        if self.retry is not None and (not self.retry or POISON in self.retry):
            suspects = Suspects(alone=frozenset((*suspects.alone, *suspects.guilty)))
        return Flow(
            Questions(tasks, manifest.run.seed),
            Assembler(tasks, manifest.input.keep, self.making.tasks, self.plan.job_id),
            Chunks(self.plan.at, outbox.put),
            self.tally,
            self.status,
            suspects,
            self._is_lost,
        )

    def _save_what_is_whole(self, flow: Flow, outbox: Outbox, error: BaseException) -> None:
        try:
            outbox.close()
            self._keep_rest(flow, ended=False)
        except Exception as second:
            if second is not error:
                error.add_note(f"and then: {second}")

    def _keep_rest(self, flow: Flow, *, ended: bool) -> None:
        """The rows of chunks that are not whole; at the end of an endless source, the last chunk and the end itself."""
        rest = flow.unfinished()
        if self.plan.is_endless and ended and flow.is_read:
            self._commit_end(rest)
            return
        for chunk, outcomes in rest:
            self.committer.keep(chunk, outcomes)
        if ended and rest:
            promised, given = self.planned, self._done.rows + self.tally.rows
            raise InputError(f"the input promised {promised} rows and gave {given}; was it changed during the run?")

    def _commit_end(self, rest: list[tuple[Chunk, list[Outcome]]]) -> None:
        for chunk, outcomes in rest:
            self.committer.write(chunk, outcomes, last=True)
        if not any(record.last for record in self.ledger.records.values()):
            number = max(self.ledger.records, default=-1) + 1
            self.committer.record(Record(number, 0, 0, 0, 0, 0, {}, 0, "", self.making.id, last=True))

    def _report(self, error: BaseException, flow: Flow, engine: AnyEngine) -> None:
        if not isinstance(error, Exception):  # we were told to stop
            return
        statistics = engine.statistics
        facts = {"engine": engine.facts, "statistics": None if statistics is None else statistics.as_dict()}
        try:
            path = report_crash(self.root, self.shard.name, error, flow.unanswered, facts)
        except OSError as refused:
            error.add_note(f"no crash report could be written: {refused}")
        else:
            error.add_note(f"crash report: {path}")
