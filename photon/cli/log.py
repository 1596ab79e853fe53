"""Log lines on standard error: for people, with a word of colour on a terminal, or one JSON object each."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from datetime import UTC, datetime
from enum import StrEnum

import typer

PROGRAM = "photon-batch"
#: What a record may carry beside its message, as ``extra``.
_FIELDS = ("row", "code")


class LogFormat(StrEnum):
    """The choices of --log-format."""

    TEXT = "text"
    JSON = "json"


def set_up_log(verbose: bool = False, quiet: bool = False, form: LogFormat = LogFormat.TEXT) -> None:
    """Has the package log to standard error: progress and more (verbose), or only what went wrong (quiet)."""
    handler = BarFriendlyHandler(logging.WARNING if quiet else logging.NOTSET)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else Words())
    log = logging.getLogger("photon")
    log.handlers[:] = [handler]
    log.setLevel(logging.DEBUG if verbose else logging.INFO)


def logs_json() -> bool:
    """Whether standard error is for JSON objects alone."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger("photon").handlers)


def painted(text: str, colour: str) -> str:
    """``text`` in ``colour`` where standard error is a terminal and NO_COLOR does not say otherwise."""
    wanted = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(text, fg=colour) if wanted else text


def terminal_columns() -> int | None:
    """How wide the terminal of standard error is; None where there is none, and lines may be as long as they are."""
    if not sys.stderr.isatty() or logs_json():
        return None
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except OSError:
        return None


class BarFriendlyHandler(logging.Handler):
    """Writes lines to standard error so that a progress bar stays whole."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        try:
            tqdm.write(self.format(record), file=sys.stderr)
        except Exception:  # as every handler does: what is logged about must not fail for it
            self.handleError(record)


class Words(logging.Formatter):
    """``photon-batch: message``, with the level before it from warnings on."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        word = ""
        if record.levelno >= logging.WARNING:
            colour = "red" if record.levelno >= logging.ERROR else "yellow"
            word = painted(f"{record.levelname.lower()}:", colour) + " "
        return f"{PROGRAM}: {word}{record.message}"


class JsonLines(logging.Formatter):
    """One object a line: time (UTC), level, logger, message and, where they are known, row, code and trace."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


class LogStream(io.StringIO):
    """What is printed to it becomes log lines: for progress where standard error is for JSON alone."""

    def write(self, text: str) -> int:
        if text.strip():
            logging.getLogger("photon.progress").info(text.strip())
        return len(text)
