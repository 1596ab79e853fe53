"""Standard streams that outlive whoever read them: `2>&1 | head`, a full disk under a log, a terminal that was closed.

A run must not end, and no row be blamed, because nobody listens any more. What was asked for on standard output is
different: at the end it is said that it could not be written, unless its reader has had enough.
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
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has one of its own, which is None
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # buffer and the like

    def _fail(self, error: OSError) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """What is still buffered, and what libraries write by themselves, goes nowhere too."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class AskedForStream(LastingStream):
    """``is_over``: whether ``stream`` takes no more. ``failure``: why, None for a reader that has gone (`| head`)."""

    is_over = False
    failure: OSError | None = None

    def _fail(self, error: OSError) -> None:
        # Noted, not raised: whoever writes may only be trying the stream, and would keep the error to itself.
        self.is_over = True
        self._let_go()
        if not isinstance(error, BrokenPipeError):
            self.failure = error


@contextmanager
def lasting_streams() -> Iterator[AskedForStream]:
    """``sys.stderr`` and ``sys.stdout``, which is given, are ones that last; one that was closed from the start becomes
    one that nobody reads."""
    before = sys.stdout, sys.stderr
    asked_for = AskedForStream(_or_nowhere(sys.stdout))
    sys.stdout = cast("TextIO", asked_for)
    sys.stderr = cast("TextIO", LastingStream(_or_nowhere(sys.stderr)))
    try:
        yield asked_for
    finally:
        sys.stdout, sys.stderr = before


def stdout_is_over() -> bool:
    """Whether there is no point in writing more to standard output."""
    return isinstance(sys.stdout, AskedForStream) and sys.stdout.is_over


def _or_nowhere(stream: TextIO | None) -> TextIO:
    return stream if stream is not None else open(os.devnull, "w", encoding="utf-8")
