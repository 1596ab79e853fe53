"""``photon-batch verify``."""

from __future__ import annotations

import typer

from photon.cli.app import Json, LogForm, OutputPath, Quiet, Verbose, app, examples
from photon.cli.log import LogFormat, set_up_log
from photon.cli.tell import errors_told, print_json, say


@app.command(epilog=examples("verify outputs/cars"))
def verify(
    output: OutputPath,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogForm = LogFormat.TEXT,
) -> None:
    """Check that a job's results are whole: every planned row once, each part as it was written, nothing beside.

    Exit codes: 0 in order, 75 in order but not finished, 5 something is wrong.
    """
    set_up_log(verbose, quiet, log_format)
    with errors_told(as_json):
        from photon.audit.verify import verify as check

        verdict = check(output)
    if not quiet or verdict.found:
        say(verdict.text())
    if as_json:
        print_json(verdict.as_dict())
    raise typer.Exit(verdict.exit_code)
