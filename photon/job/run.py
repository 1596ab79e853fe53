"""A batch job from its manifest to its summary: rows in, answers out, exactly one result row for each input row.

The calling thread drives the engine; a writer thread puts whole chunks on disk. Resuming is not done here.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import closing, nullcontext, suppress
from pathlib import Path

from photon.core import Result
from photon.data.row import Source
from photon.data.schema import TaskColumn, features_of, result_schema
from photon.data.writer import PartWriter
from photon.engine.load import AnyEngine
from photon.engine.record import Listener
from photon.engine.trace_file import TraceFile
from photon.errors import OutputError, UsageError
from photon.job.assemble import Assembler
from photon.job.chunks import Chunks
from photon.job.engine import check_adapters, open_engine
from photon.job.fingerprint import task_fingerprint
from photon.job.flow import Flow
from photon.job.folder import OutputFolder
from photon.job.outbox import Outbox
from photon.job.progress import Progress, Silent
from photon.job.questions import Questions
from photon.job.record import RunRecord, State
from photon.job.sources import check_trace, open_source
from photon.job.summary import Summary
from photon.job.tally import Tally
from photon.manifest.manifest import Manifest

log = logging.getLogger(__name__)

#: Rows to a chunk where the manifest says auto.
CHUNK_ROWS = 1000


def run(
    manifest: Manifest,
    *,
    limit: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    engine: AnyEngine | None = None,
    trace: Path | None = None,
) -> Summary:
    """Runs ``manifest`` to its end.

    ``limit`` stands in for ``input.limit``; ``fresh`` replaces an earlier run's results; ``engine`` stands in for the
    manifest's model and stays open; ``trace`` is a file to write what the engine's steps did. Raises ``UsageError``,
    ``InputError``, ``OutputError`` or ``EngineError``; then, as on ``KeyboardInterrupt``, whole chunks are on disk and
    run.json tells how the run ended.
    """
    if limit is not None:
        manifest = manifest.with_limit(limit)
    source = open_source(manifest)
    if trace is not None:
        check_trace(trace, manifest, source)
    folder = OutputFolder(manifest.output.dir)
    folder.check(fresh)
    used = engine or open_engine(manifest)
    try:
        check_adapters(manifest, used)
        if trace is not None and used.statistics is None:
            raise UsageError(f"{manifest.model.path} takes no steps, so there is nothing to trace")
        with nullcontext() if trace is None else TraceFile(trace) as file:
            folder.claim(fresh)
            job = _Job(manifest, source, used, folder, progress or Silent())
            return job.run(None if file is None else file.write)
    finally:
        if engine is None:
            used.close()


class _Job:
    """One run, from an opened source and engine on."""

    def __init__(
        self, manifest: Manifest, source: Source, engine: AnyEngine, folder: OutputFolder, progress: Progress
    ) -> None:
        self._manifest, self._source, self._engine = manifest, source, engine
        self._folder, self._progress = folder, progress
        facts = {"fingerprint": engine.fingerprint, **engine.facts}
        fingerprints = {task.name: task_fingerprint(task, manifest, facts) for task in manifest.tasks}
        self._record = RunRecord(manifest, dict(engine.facts), fingerprints)
        self._tally = Tally()

    def run(self, trace: Listener | None) -> Summary:
        outbox = Outbox(self._writer())
        flow = self._flow(outbox)
        self._save("running", outbox)
        lost = False
        try:
            total = self._total()
            rows = "an unknown number of" if total is None else f"{total:,}"
            log.info("%s rows, tasks: %s", rows, ", ".join(task.name for task in self._manifest.tasks))
            self._progress.start(total)
            with closing(self._answers(flow, trace)) as results:
                for result in results:
                    flow.take(result)
                    if lost := self._is_lost(total):
                        break
            if lost:
                flow.stop()
            else:
                flow.finish(total)
            outbox.close()
        except BaseException as error:
            flow.stop()
            with suppress(Exception):  # the error at hand says more than a second one of the writer's
                outbox.close()
            interrupted = isinstance(error, KeyboardInterrupt)
            if interrupted and outbox.parts:
                error.add_note("the chunks that were whole are on disk")
            self._save("interrupted" if interrupted else "failed", outbox, error)
            raise
        finally:
            self._progress.close()
        if lost:
            log.warning(
                "stopped early: %d of %d rows failed already; whole chunks are on disk", self._tally.failed, total
            )
        self._save("over_budget" if lost else "finished", outbox)
        return self._summary(outbox)

    def _is_lost(self, total: int | None) -> bool:
        """Whether more rows failed than may fail in all, with rows left to come."""
        errors, rows = self._manifest.errors, self._tally.rows
        if total is None or not errors.min_rows <= rows < total:
            return False
        return self._tally.failed > errors.max_failure_rate * total

    def _answers(self, flow: Flow, trace: Listener | None) -> Generator[Result, None, None]:
        """The engine's results, as a generator that closes the engine's own when it is left early."""
        yield from self._engine.run(flow.requests(self._source.rows(self._manifest.input.limit)), trace=trace)

    def _flow(self, outbox: Outbox) -> Flow:
        tasks, chunk_rows = self._manifest.tasks, self._manifest.output.chunk_rows
        kept, record = self._manifest.input.keep, self._record
        return Flow(
            Questions(tasks, self._manifest.run.seed),
            Assembler(tasks, kept, record.fingerprints, record.job_id),
            Chunks(CHUNK_ROWS if chunk_rows == "auto" else chunk_rows, outbox.put),
            self._tally,
            self._progress,
        )

    def _writer(self) -> PartWriter:
        schema = self._source.schema
        tasks = [TaskColumn(task.name, task.kind, task.shows_reasoning) for task in self._manifest.tasks]
        kept = [schema.field(name) for name in self._manifest.input.keep]
        columns = result_schema(tasks, kept, features_of(schema))
        return PartWriter(self._folder.data, columns, ipc=self._manifest.output.ipc)

    def _total(self) -> int | None:
        """Rows to come, None when the source does not know."""
        count, limit = self._source.count(), self._manifest.input.limit
        return count if limit is None or count is None else min(count, limit)

    def _save(self, state: State, outbox: Outbox, error: BaseException | None = None) -> None:
        told = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        tally, parts = self._tally, outbox.parts
        counts = {
            "rows": tally.rows,
            "ok": tally.ok,
            "failed": tally.failed,
            "requests": tally.requests,
            "found": tally.found,
            "codes": {code.code: code.count for code in tally.codes.values()},
            "parts": len(parts),
            "rows_on_disk": sum(part.rows for part in parts),
        }
        try:
            statistics = None if state == "running" else self._engine.statistics
            self._record.write(self._folder.record, state, counts, told, statistics)
        except OSError as failed:
            raise OutputError(f"cannot write {self._folder.record}: {failed.strerror or failed}") from failed

    def _summary(self, outbox: Outbox) -> Summary:
        tally = self._tally
        return Summary(
            rows=tally.rows,
            ok=tally.ok,
            failed=tally.failed,
            requests=tally.requests,
            found=tally.found,
            seconds=tally.seconds,
            codes=tuple(tally.codes.values()),
            parts=len(outbox.parts),
            bytes=sum(part.bytes for part in outbox.parts),
            output=str(self._folder.root),
            ipc=self._manifest.output.ipc,
            max_failure_rate=self._manifest.errors.max_failure_rate,
            model=self._manifest.model.path,
            meaningless=bool(self._record.facts.get("meaningless")),
            statistics=self._engine.statistics,
        )
