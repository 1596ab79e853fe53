"""``photon-batch merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import Json, LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json, say


@app.command(epilog=examples("merge outputs/cars --out cars", "merge outputs/cars --format arrow --out cars"))
def merge(
    output: OutputPath,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to make.")],
    form: Annotated[str, typer.Option("--format", metavar="parquet|arrow", help="What to write.")] = "parquet",
    rows_per_file: Annotated[
        int | None, typer.Option(metavar="ROWS", help="A file's rows; by default it is full with 256 MB.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take what is there of a job that is not finished.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Write a job's many parts as a few large files, rows as they are."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(as_json):
        from photon.export.merge import merge as merge_parts

        made = merge_parts(output, out, form, rows_per_file=rows_per_file, partial=partial)
    if not quiet:
        say(made.text())
    if as_json:
        print_json(made.as_dict())
