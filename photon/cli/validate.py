"""``photon-batch validate``."""

from __future__ import annotations

from typing import Annotated

import typer

from photon.cli.app import Json, LogForm, ManifestPath, Quiet, Sets, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json, say


@app.command(epilog=examples("validate cars.yaml", "validate cars.yaml --set input.limit=100 --show-resolved"))
def validate(
    manifest: ManifestPath,
    sets: Sets = None,
    show_resolved: Annotated[
        bool, typer.Option("--show-resolved", help="Print every value and where it comes from.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Check a manifest and the columns of its input, without a model."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(as_json):
        from photon.manifest.load import load_manifest
        from photon.manifest.resolved import resolve, resolved_table

        loaded = load_manifest(manifest, sets or ())
        from photon.job.sources import open_source

        rows = open_source(loaded).count()
    tasks = [task.name for task in loaded.tasks]
    count = "an unknown number of" if rows is None else f"{rows:,}"
    if not quiet:
        say(f"{manifest} is in order: {', '.join(tasks)} over {count} rows, into {loaded.output.dir}")
    values = resolve(loaded) if show_resolved else []
    if as_json:
        told = {"valid": True, "rows": rows, "tasks": tasks, "manifest": loaded.model_dump(mode="json")}
        resolved = {value.key: {"value": value.value, "origin": value.origin} for value in values}
        print_json({**told, "resolved": resolved} if show_resolved else told)
    elif show_resolved:
        typer.echo(resolved_table(values))
