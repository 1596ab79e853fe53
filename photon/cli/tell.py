"""What commands say and how they end: errors with their exit codes, JSON, and what a person reads at the end."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from photon.cli.log import PROGRAM, logs_json, painted
from photon.errors import PhotonError

INTERRUPTED = 130
log = logging.getLogger("photon.cli")


@contextmanager
def errors_told(as_json: bool) -> Iterator[None]:
    """Tells an expected error as one message and exits with its code; a bug keeps its traceback and exits 1."""
    try:
        yield
    except PhotonError as error:
        message, code = str(error), error.exit_code
        problems = [
            {"line": problem.line, "origin": problem.origin, "key": problem.key, "message": problem.message}
            for problem in getattr(error, "problems", ())
        ]
    except KeyboardInterrupt as error:
        message, code, problems = "; ".join(["interrupted", *getattr(error, "__notes__", ())]), INTERRUPTED, []
    else:
        return
    complain(message)
    if as_json:
        print_json({"error": message, "exit_code": code, "problems": problems})
    raise typer.Exit(code)


def complain(message: str) -> None:
    """The one form of an error: the program, the word, then what is wrong, where, and what to do."""
    if logs_json():
        log.error(message)
    else:
        typer.echo(f"{PROGRAM}: {painted('error:', 'red')} {message}", err=True)


def say(text: str) -> None:
    """What a person is told at the end, on standard error."""
    if logs_json():
        log.info(text)
    else:
        typer.echo(text, err=True)


def print_json(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str) + "\n")
