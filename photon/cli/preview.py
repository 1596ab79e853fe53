"""``photon-batch preview``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from photon.cli.app import LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, say


@app.command(epilog=examples("preview outputs/cars", "preview outputs/cars --failed --out failed.png"))
def preview(
    output: OutputPath,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to, a .png; by default OUTPUT/preview.png.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Draw so many rows, spread over the whole output.")] = 12,
    columns: Annotated[int, typer.Option(help="Pictures side by side.")] = 4,
    task: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="This task's answers alone; repeatable.")
    ] = None,
    min_score: Annotated[float, typer.Option(help="Leave out boxes and points below this score.")] = 0.0,
    failed: Annotated[bool, typer.Option("--failed", help="Draw failed rows alone.")] = False,
    seed: Annotated[int, typer.Option(help="Another one draws other rows.")] = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Draw a sample of a run's answers on their pictures, as one PNG."""
    set_up_log(verbose, quiet, log_format)
    with errors_told(False):
        from photon.report.preview import PreviewOptions, write_preview

        options = PreviewOptions(rows, columns, tuple(task or ()), min_score, failed, seed)
        made = write_preview(output, out, options)
    if not quiet:
        say(made.text())
