"""``photon-batch init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, say


@app.command(epilog=examples("init photos", 'init "data/*.parquet" --out cars.yaml'))
def init(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Parquet or Arrow files, tars, or a folder, of pictures too.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to, a .yaml; by default called after DATA.")
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Look at some data and write a manifest for it, to start from."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(False):
        from photon.job.draft.draft import write_draft

        made = write_draft(data, out)
    if not quiet:
        say(made.text())
