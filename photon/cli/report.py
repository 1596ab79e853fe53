"""``photon-batch report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, say


@app.command(epilog=examples("report outputs/cars"))
def report(
    output: OutputPath,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to, a .html; by default OUTPUT/report.html.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows in each gallery; 0 for none, which needs no pictures.")] = 12,
    seed: Annotated[int, typer.Option(help="Another one shows other rows, among those that are alike.")] = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Write a run's figures and galleries of its rows, as one HTML file that needs nothing else."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(False):
        from photon.report.report import ReportOptions, write_report

        made = write_report(output, out, ReportOptions(rows, seed))
    if not quiet:
        say(made.text())
