"""Standard error that outlives whoever read it: `2>&1 | head`, a full disk under the log, a terminal that was closed.

A run must not end, and no row be blamed, because nobody listens any more.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class LastingStream(io.TextIOBase):
    """Passes text on to ``stream`` until that fails, and to nobody from then on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._let_go()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # encoding, buffer and the like

    def _let_go(self) -> None:
        """What is still buffered, and what libraries write by themselves, goes nowhere too."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def lasting_stderr() -> Iterator[None]:
    """``sys.stderr`` is one that lasts; one that was closed from the start becomes one that nobody reads."""
    before = sys.stderr
    stream = before if before is not None else open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = cast("TextIO", LastingStream(stream))
    try:
        yield
    finally:
        sys.stderr = before
