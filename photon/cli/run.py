"""``photon-batch run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import Json, ManifestPath, app
from photon.cli.tell import errors_told, print_json, set_up_log


@app.command()
def run(
    manifest: ManifestPath,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many rows.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the results of an earlier run.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what each step did, for https://ui.perfetto.dev.")
    ] = None,
    as_json: Json = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no bar and no progress lines.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only what went wrong.")] = False,
) -> None:
    """Ask a manifest's tasks of every row of its input and write the answers."""
    set_up_log(verbose, quiet)
    with errors_told(as_json):
        from photon.manifest.load import load_manifest

        loaded = load_manifest(manifest)
        from photon.job.progress import progress_for
        from photon.job.run import run as run_job

        shown = progress_for(shown=not (no_progress or quiet))
        summary = run_job(loaded, limit=limit, fresh=fresh, progress=shown, trace=trace)
    if not quiet:
        typer.echo(summary.text(), err=True)
    if as_json:
        print_json(summary.as_dict())
    raise typer.Exit(summary.exit_code)
