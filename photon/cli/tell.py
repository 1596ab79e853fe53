"""What commands say and how they end: errors with their exit codes, JSON, log lines that leave a bar whole."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from photon.errors import PhotonError

PROGRAM = "photon-batch"
INTERRUPTED = 130


@contextmanager
def errors_told(as_json: bool) -> Iterator[None]:
    """Tells an expected error as one message and exits with its code; a bug keeps its traceback and exits 1."""
    try:
        yield
    except PhotonError as error:
        message, code = str(error), error.exit_code
        problems = [
            {"line": problem.line, "key": problem.key, "message": problem.message}
            for problem in getattr(error, "problems", ())
        ]
    except KeyboardInterrupt as error:
        message, code, problems = "; ".join(["interrupted", *getattr(error, "__notes__", ())]), INTERRUPTED, []
    else:
        return
    typer.echo(f"{PROGRAM}: error: {message}", err=True)
    if as_json:
        print_json({"error": message, "exit_code": code, "problems": problems})
    raise typer.Exit(code)


def print_json(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str) + "\n")


def set_up_log(verbose: bool, quiet: bool) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    handler = BarFriendlyHandler()
    handler.setFormatter(logging.Formatter(f"{PROGRAM}: %(message)s"))
    log = logging.getLogger("photon")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False


class BarFriendlyHandler(logging.Handler):
    """Log lines on standard error that leave a progress bar whole."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(self.format(record), file=sys.stderr)
