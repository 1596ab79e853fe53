"""``photon-batch plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from photon.cli.app import Json, LogForm, ManifestPath, Quiet, Sets, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json, say


@app.command(epilog=examples("plan cars.yaml", "plan cars.yaml --rate 40 --price-per-hour 2.50"))
def plan(
    manifest: ManifestPath,
    sets: Sets = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Plan so many rows alone.")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Load the model and try it on a few rows.")] = False,
    rate: Annotated[float | None, typer.Option(help="Images a second of one process, where you know it.")] = None,
    price_per_hour: Annotated[float | None, typer.Option(help="What an hour of one process costs.")] = None,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Divide a manifest's input into chunks, for good, and tell what the job will come to."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(as_json):
        from photon.manifest.load import load_manifest

        loaded = load_manifest(manifest, sets or ())
        from photon.audit.prepare import prepare

        if limit is not None:
            loaded = loaded.with_limit(limit)
        made = prepare(loaded, measure=measure, rate=rate, price_per_hour=price_per_hour)
    if not quiet:
        say(made.text())
    if as_json:
        print_json(made.as_dict())
