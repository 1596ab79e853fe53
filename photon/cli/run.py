"""``photon-batch run``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from photon.cli.app import Json, LogForm, ManifestPath, Quiet, Sets, Verbose, app, examples
from photon.cli.log import LogFormat, LogStream, set_up_log, terminal_columns
from photon.cli.tell import errors_told, print_json, say
from photon.errors import UsageError

if TYPE_CHECKING:
    from photon.job.progress import Progress
    from photon.manifest.manifest import Manifest

_EXAMPLES = examples(
    "run cars.yaml --limit 20",
    "run cars.yaml --dry-run",
    "run cars.yaml --set tasks.0.max_objects=100",
)


@app.command(epilog=_EXAMPLES)
def run(
    manifest: ManifestPath,
    sets: Sets = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many rows.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the results of an earlier run.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="i/N", help="Do this part of N; by default what Slurm or torchrun says."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask failed rows again.")] = False,
    code: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="With --retry-failed: those of this code alone; repeatable."),
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End at the first row that fails.")] = False,
    steal: Annotated[bool, typer.Option("--steal", help="Take the shard from a process that is gone.")] = False,
    grace: Annotated[float, typer.Option(help="Seconds to finish what is in flight when asked to stop.")] = 45.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try some rows without the model; write nothing.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what each step did, for https://ui.perfetto.dev.")
    ] = None,
    as_json: Json = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no bar and no progress lines.")] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Ask a manifest's tasks of every row and write the answers."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(as_json):
        from photon.manifest.load import load_manifest

        retry = _retried(retry_failed, code or ())
        loaded = load_manifest(manifest, sets or ())
        if dry_run:
            raise typer.Exit(_try_out(loaded, limit, fresh, as_json, quiet))
        from photon.job.run import run as run_job
        from photon.job.stop import Abandoned, Stop
        from photon.plan.shard import shard_from

        try:
            with Stop(grace) as stop:
                summary = run_job(
                    loaded,
                    limit=limit,
                    shard=shard_from(shard, os.environ),
                    fresh=fresh,
                    retry=retry,
                    fail_fast=fail_fast,
                    steal=steal,
                    trace=trace,
                    progress=_progress(log_format, shown=not (no_progress or quiet)),
                    stop=stop,
                )
        except Abandoned as error:  # before anything was begun
            raise typer.Exit(error.exit_code) from None
    if not quiet:
        say(summary.text(terminal_columns()))
    if as_json:
        print_json(summary.as_dict())
    raise typer.Exit(summary.exit_code)


def _retried(wanted: bool, codes: Sequence[str]) -> frozenset[str] | None:
    if codes and not wanted:
        raise UsageError("--code says which of the failed rows to ask again; give --retry-failed with it")
    return frozenset(codes) if wanted else None


def _try_out(manifest: Manifest, limit: int | None, fresh: bool, as_json: bool, quiet: bool) -> int:
    from photon.audit.dry_run import dry_run

    tried = dry_run(manifest, limit=limit, fresh=fresh)
    if not quiet:
        say(tried.text())
    if as_json:
        print_json(tried.as_dict())
    return tried.exit_code


def _progress(log_format: LogFormat, *, shown: bool) -> Progress:
    from photon.job.progress import progress_for

    return progress_for(LogStream() if log_format is LogFormat.JSON else None, shown=shown)
