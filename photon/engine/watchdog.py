"""Notices an engine that no longer gets anything done, and says what it was doing.

Without it a hang shows as nothing at all, for ever. A step that ends is progress, an answer need not come of it: a CPU
encodes many pictures before the first. A slow caller is no stall: the clock runs only while requests are inside.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback

from photon.errors import StallError


class Watchdog:
    """``timeout``: seconds without progress that are too many."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._since = time.monotonic()

    def progress(self) -> None:
        """A step was finished, a result was taken, or no request is inside."""
        self._since = time.monotonic()

    @property
    def alarmed(self) -> bool:
        """Whether nothing has got done for too long."""
        return time.monotonic() - self._since > self.timeout


def stalled(timeout: float, state: str) -> StallError:
    """The error to raise. Its notes hold the stacks, for the log."""
    error = StallError(f"the engine has stalled: no step was finished in {timeout:g} s; {state}")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        error.add_note(f"thread {names.get(ident, ident)}:\n{stack}")
    return error
