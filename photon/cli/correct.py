"""``photon-batch correct``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, say


@app.command(epilog=examples("correct outputs/cars --from reviewed.json --out truth.parquet"))
def correct(
    output: OutputPath,
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="COCO or Label Studio JSON, an export that was reviewed.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The Parquet file to make, with a column truth.")],
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What was reviewed, where FILE does not say; repeatable.")
    ] = None,
    frame: Annotated[
        str | None,
        typer.Option(metavar="oriented|stored", help="How pictures were seen, where FILE does not say."),
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Make a reviewed export the truth that ``eval`` holds the run against."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(False):
        from photon.export.correct import correct as make_truth

        made = make_truth(output, source, out, tuple(task or ()), frame)
    if not quiet:
        say(made.text())
