"""photon-batch: each command is one call into the library, in a file of its own.

Standard output carries what was asked for: --json, --help, --version, --show-resolved, a schema, and the tables of
``status``, ``simulate``, ``eval`` and ``bench``; messages, the progress bar and the summary go to standard error.
Exit codes are those of ``photon.errors``, 3 for too many failed rows, 130 for an interrupt.
"""

from __future__ import annotations

import sys

import typer

# isort: off
# In the order of --help.
from photon.cli import run as run
from photon.cli import slurm as slurm
from photon.cli import validate as validate
from photon.cli import init as init
from photon.cli import schema as schema
from photon.cli import plan as plan
from photon.cli import status as status
from photon.cli import verify as verify
from photon.cli import merge as merge
from photon.cli import preview as preview
from photon.cli import report as report
from photon.cli import evaluate as evaluate
from photon.cli import export as export
from photon.cli import correct as correct
from photon.cli import simulate as simulate
from photon.cli import bench as bench

# isort: on
from photon.cli.app import app as app
from photon.cli.lasting import lasting_streams
from photon.cli.log import PROGRAM, set_up_log
from photon.cli.tell import INTERRUPTED, complain
from photon.errors import OutputError


def main() -> None:
    """The console script."""
    with lasting_streams() as asked_for:
        code = _run()
        asked_for.flush()
        if asked_for.failure is not None:
            reason = asked_for.failure.strerror
            complain(f"cannot write to standard output: {reason}; what was asked for is cut short")
            code = code or OutputError.exit_code
    sys.exit(code)


def _run() -> int:
    set_up_log(quiet=True)  # for commands that do not ask how much to say
    code: int
    try:
        code = app(prog_name=PROGRAM, standalone_mode=False)
    except typer.Abort:
        complain("interrupted")
        code = INTERRUPTED
    except Exception as error:
        # A wrong command line. By its method, as the class is typer's own in some versions and click's in others.
        if not hasattr(error, "format_message"):
            raise
        _tell_usage(error, str(error.format_message()))
        code = getattr(error, "exit_code", 2)
    return code or 0


def _tell_usage(error: Exception, message: str) -> None:
    """A wrong command line in the form of all our errors; a bare command with its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    complain(f"{message[:1].lower()}{message[1:].rstrip('.')}; see {command} --help")
