"""A batch job from its manifest to its summary: rows in, answers out, exactly one result row for each input row.

The same call goes on where an earlier one ended, does what has come to the input since, or does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from photon.data.disk import blaming
from photon.data.schema import TaskColumn, features_of, result_schema
from photon.data.writer import PartWriter
from photon.engine.load import AnyEngine
from photon.engine.record import Listener
from photon.engine.trace_file import TraceFile
from photon.errors import DeviceMemoryError, EngineError, PhotonError, UsageError
from photon.job.collector import collecting_less
from photon.job.commit import Committer
from photon.job.done import nothing_to_do, warn_of_idle_codes
from photon.job.engine import check_adapters, open_engine
from photon.job.folder import OutputFolder
from photon.job.job import Ending, Job
from photon.job.making import check_base, making_of
from photon.job.measure import CHUNK_ROWS, measured_chunk_rows
from photon.job.planning import Planned, new_plan, open_plan
from photon.job.progress import Progress, Silent
from photon.job.prompts import check_prompts
from photon.job.quarantine import Quarantine
from photon.job.recall import OPEN_FOLDER
from photon.job.record import RunRecord, State
from photon.job.recover import Recovery, sweep
from photon.job.sources import check_trace, open_source
from photon.job.status_file import StatusFile, read_status
from photon.job.stop import PREEMPTED, Abandoned, Stop
from photon.job.summary import OVER_BUDGET, Summary, with_earlier
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Ledger, LedgerFile, Making
from photon.plan.owner import OwnerRecord
from photon.plan.shard import Shard

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Options:
    """What ``run`` was asked for."""

    shard: Shard
    fresh: bool
    retry: Collection[str] | None
    fail_fast: bool
    steal: bool
    trace: Path | None


def run(
    manifest: Manifest,
    *,
    limit: int | None = None,
    shard: Shard | None = None,
    fresh: bool = False,
    retry: Collection[str] | None = None,
    fail_fast: bool = False,
    steal: bool = False,
    trace: Path | None = None,
    progress: Progress | None = None,
    engine: AnyEngine | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Runs ``manifest`` to its end, or on to it.

    ``limit`` stands in for ``input.limit``. ``fresh`` replaces an earlier run's results. ``retry``: the codes of failed
    rows to ask again, all where it is empty, none where it is None. ``fail_fast`` ends at the first failed row.
    ``steal`` takes the shard from a process that has it. ``trace``: a file to write what the engine's steps did.
    ``engine`` stands in for the manifest's model and stays open; ``stop``, entered, says when to end early.

    Raises ``UsageError``, ``InputError``, ``OutputError`` or ``EngineError``; then, as on ``KeyboardInterrupt``, whole
    chunks are on disk, and the finished rows of the others for the next run.
    """
    options, stop = _Options(shard or Shard(), fresh, retry, fail_fast, steal, trace), stop or Stop()
    if limit is not None:
        manifest = manifest.with_limit(limit)
    if options.fresh and options.shard.count > 1:
        raise UsageError("--fresh would remove what the other shards are doing; remove the folder before they start")
    folder = OutputFolder(manifest.output.dir)
    alone = options.shard.count == 1
    # Shards work by the plan that is there: were each to list the input, a hub or a file server would feel it.
    source = open_source(manifest) if alone else None
    folder.check(options.fresh)
    if options.fresh and source:
        planned = new_plan(manifest, source)
    else:
        planned = open_plan(folder.root, manifest, source, retry)
    if planned.plan.is_endless and not alone:
        raise UsageError("how many rows this input has is not known before it is read, so it cannot be sharded")
    if options.trace is not None:
        check_trace(options.trace, manifest, planned.source)
    warn_of_idle_codes(folder, retry)
    if options.trace is None and (done := nothing_to_do(manifest, folder, planned, options.shard, retry)):
        return done
    with ExitStack() as stack:
        used = engine or open_engine(manifest, _remembered_batch(folder, options.shard))
        run = _Run(manifest, planned, used, engine is not None, folder, options, progress or Silent(), stop)
        stack.callback(run.close)
        return run.run()


def _remembered_batch(folder: OutputFolder, shard: Shard) -> int | None:
    """The batch that an earlier run had to go down to."""
    batch = read_status(folder.root, shard).get("max_batch")
    return batch if isinstance(batch, int) else None


class _Run:
    """One run, from an opened plan and engine on."""

    def __init__(
        self,
        manifest: Manifest,
        planned: Planned,
        engine: AnyEngine,
        lent: bool,
        folder: OutputFolder,
        options: _Options,
        progress: Progress,
        stop: Stop,
    ) -> None:
        """``lent``: the engine is the caller's."""
        self._manifest, self._planned, self._folder, self._options = manifest, planned, folder, options
        self._engine, self._lent, self._progress, self._stop = engine, lent, progress, stop

    def close(self) -> None:
        if not self._lent:
            self._engine.close()

    def run(self) -> Summary:
        manifest, options, root = self._manifest, self._options, self._folder.root
        check_adapters(manifest, self._engine)
        check_prompts(manifest, self._engine)
        if options.trace is not None and self._engine.statistics is None:
            raise UsageError(f"{manifest.model.path} takes no steps, so there is nothing to trace")
        facts = {"fingerprint": self._engine.fingerprint, **self._engine.facts}
        schema = self._schema()
        making = making_of(manifest, facts, schema)
        with ExitStack() as stack:
            file = None if options.trace is None else stack.enter_context(TraceFile(options.trace))
            owner = OwnerRecord(root, options.shard)
            owner.take(steal=options.steal)
            stack.callback(owner.release)
            self._claim(making, owner.path)
            ledger_file = LedgerFile(root, options.shard.name)
            stack.callback(ledger_file.close)
            ledger, quarantine = Ledger.read(root), Quarantine(root, manifest.output.ipc)
            parts, unfinished = (
                PartWriter(folder, schema, ipc=manifest.output.ipc)
                for folder in (self._folder.data, root / OPEN_FOLDER)
            )
            committer = Committer(root, parts, unfinished, quarantine, ledger_file, ledger, making, owner)
            plan = self._planned.plan
            sweep(root, options.shard)
            recovery = Recovery(root, options.shard.of(plan.chunks), committer, quarantine)
            recovery.before(plan, ledger, making, manifest.tasks)
            status = StatusFile(root, options.shard, self._progress)
            status.note(max_batch=_remembered_batch(self._folder, options.shard))
            job = Job(
                root=root,
                manifest=manifest,
                plan=plan,
                source=self._planned.source,
                shard=options.shard,
                making=making,
                ledger=ledger,
                committer=committer,
                status=status,
                stop=self._stop,
                retry=options.retry,
                fail_fast=options.fail_fast,
            )
            summary = self._work(job, status, None if file is None else file.write)
            if summary.state == "finished":
                recovery.after()
            return summary

    def _schema(self) -> pa.Schema:
        schema, manifest = self._planned.source.schema, self._manifest
        tasks = [TaskColumn(task.name, task.kind, task.shows_reasoning) for task in manifest.tasks]
        kept = [schema.field(name) for name in manifest.input.keep]
        return result_schema(tasks, kept, features_of(schema))

    def _claim(self, making: Making, mine: Path) -> None:
        """The folder with the plan in it; ``mine``: our owner record. Raises ``UsageError`` where other settings made
        what is there."""
        planned, folder, options = self._planned, self._folder, self._options
        chunk_rows = planned.plan.chunk_rows
        if planned.is_new:
            chunk_rows = self._chunk_rows()
        else:
            check_base(making, Ledger.read(folder.root).makings.values())
        folder.claim(options.fresh, mine)
        planned.freeze(folder.root, self._manifest, chunk_rows)

    def _chunk_rows(self) -> int:
        """A crash over the sample is left to the run itself, which reports it and knows what to do about it."""
        try:
            return measured_chunk_rows(self._manifest, self._planned.source, self._engine)
        except (EngineError, DeviceMemoryError) as error:
            log.warning("no speed could be measured, so chunks have %d rows: %s", CHUNK_ROWS, error)
            if not self._lent:
                self._engine.close()
                self._engine = open_engine(self._manifest)
            return CHUNK_ROWS

    def _work(self, job: Job, status: StatusFile, trace: Listener | None) -> Summary:
        record = RunRecord(self._manifest, dict(self._engine.facts), job.making, job.plan, self._options.shard)
        self._save(record, job, "running")
        todo = None if job.plan.is_endless else sum(chunk.rows for chunk in job.todo())
        log.info(
            "%s rows to do, tasks: %s",
            "an unknown number of" if todo is None else f"{todo:,}",
            ", ".join(task.name for task in self._manifest.tasks),
        )
        ending: State
        code = None
        try:
            status.start(todo)
            status.write("running")
            ending = self._pass(job, status, trace)
        except Abandoned as error:
            ending, code = "preempted", error.exit_code
            log.warning("%s; what was finished is on disk", error)
        except BaseException as error:
            ending = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            if not job.committer.is_lost:  # else both files are another process's now
                status.write(ending)
                with suppress(PhotonError):  # the error at hand says more than a second one
                    self._save(record, job, ending, error)
            raise
        finally:
            status.close()
        if ending == "preempted" and code is None:
            code = PREEMPTED
        status.write(ending)
        self._save(record, job, ending)
        return self._summary(job, ending, code)

    @collecting_less()
    def _pass(self, job: Job, status: StatusFile, trace: Listener | None) -> Ending:
        """Where the device's memory runs out, once more with half the batch."""
        try:
            return job.work(self._engine, trace)
        except DeviceMemoryError as error:
            batch = self._engine.facts.get("max_batch")
            if self._lent or not isinstance(batch, int) or batch < 2:
                raise
            log.warning("%s; going on with a batch of %d in place of %d", error, batch // 2, batch)
            self._engine.close()
            status.note(max_batch=batch // 2)
            self._engine = open_engine(self._manifest, batch // 2)
            self._stop.resume()
            return job.work(self._engine, trace)

    def _save(self, record: RunRecord, job: Job, state: State, error: BaseException | None = None) -> None:
        told = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        statistics = None if state == "running" else self._engine.statistics
        with blaming(self._folder.record):
            record.write(self._folder.root, state, job.counts(), told, statistics)

    def _summary(self, job: Job, ending: State, code: int | None) -> Summary:
        counts, records = job.counts(), job.records()
        return Summary(
            rows=counts["rows"],
            ok=counts["ok"],
            failed=counts["failed"],
            requests=job.tally.requests,
            found=counts["found"],
            seconds=job.tally.seconds,
            codes=with_earlier(job.tally.codes.values(), counts["codes"]),
            parts=sum(record.rows > 0 for record in records),
            bytes=sum(record.bytes for record in records),
            output=str(self._folder.root),
            ipc=self._manifest.output.ipc,
            max_failure_rate=self._manifest.errors.max_failure_rate,
            model=self._manifest.model.path,
            meaningless=bool(self._engine.facts.get("meaningless")),
            statistics=self._engine.statistics,
            new_rows=job.tally.rows,
            odd_orientations=job.tally.odd_orientations,
            state=ending,
            stopped_with=code if code is not None else OVER_BUDGET if ending == "over_budget" else None,
        )
