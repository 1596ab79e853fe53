"""``photon-batch status``."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from photon.cli.app import Json, LogForm, OutputPath, app, examples
from photon.cli.lasting import stdout_is_over
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json


@app.command(epilog=examples("status outputs/cars", "status outputs/cars --watch"))
def status(
    output: OutputPath,
    keep_watching: Annotated[
        bool, typer.Option("--watch", help="Look again every few seconds, until no process is at work.")
    ] = False,
    as_json: Json = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Tell how far a job is: rows, rate, time left, failures, shard by shard."""
    set_up_log(form=log_format)
    with errors_told(as_json):
        from photon.audit.status import JobStatus, read_job_status, watch
        from photon.audit.status_table import status_text

        on_terminal = sys.stdout.isatty()
        above = 0

        def show(found: JobStatus) -> None:
            nonlocal above
            if as_json:
                print_json(found.as_dict())
            elif not on_terminal:
                typer.echo(status_text(found))
            else:
                columns, lines = shutil.get_terminal_size()
                text = status_text(found, columns, lines if keep_watching else None)
                if keep_watching:  # a line that wraps would be two to go back over
                    text = "\n".join(line[:columns] for line in text.splitlines())
                back = f"\x1b[{above}F\x1b[J" if above else ""
                typer.echo(back + text)
                above = text.count("\n") + 1
            sys.stdout.flush()
            if stdout_is_over():
                raise typer.Exit

        if not keep_watching:
            show(read_job_status(output))
            return
        try:
            watch(output, show)
        except KeyboardInterrupt:
            if on_terminal:  # the terminal has written ^C
                typer.echo()
