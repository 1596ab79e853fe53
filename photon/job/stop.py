"""Being asked to stop: TERM, USR1 and Ctrl-C let the rows in flight finish, a second one or the end of the grace period
does not."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

log = logging.getLogger(__name__)

#: Exit codes: pre-empted, the state is committed and the same command goes on; interrupted twice from the keyboard.
PREEMPTED, INTERRUPTED = 75, 130
#: Seconds to finish what is in flight.
GRACE = 45.0
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Abandoned(BaseException):
    """Raised in the main thread when the rows in flight are not waited for any longer. ``exit_code`` is 75 or 130."""

    def __init__(self, why: str, exit_code: int) -> None:
        super().__init__(why)
        self.exit_code = exit_code


class Stop:
    """While entered, in the main thread, signals are taken; ``on_ask`` is called at the first one, in the handler."""

    def __init__(self, grace: float = GRACE) -> None:
        self.on_ask: Callable[[], None] = lambda: None
        self._grace = grace
        self._asked: str | None = None
        self._over = False
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        return self._asked is not None

    @property
    def reason(self) -> str:
        """The name of the first signal."""
        return self._asked or ""

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (*_SIGNALS, signal.SIGALRM):
                # Ctrl-C is ignored in what a shell has in its background, and stays so.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def settle(self) -> None:
        """From here on nothing is abandoned any more: what is complete is being committed."""
        self._over = True
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def resume(self) -> None:
        """Takes ``settle`` back: the work goes on."""
        self._over = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            self._asked = self._asked or signal.Signals(number).name
            return
        if number == signal.SIGALRM:
            raise Abandoned(f"{self.reason}: rows in flight after {self._grace:g} s of grace", PREEMPTED)
        name = signal.Signals(number).name
        if self._asked is None:
            self._asked = name
            signal.setitimer(signal.ITIMER_REAL, max(self._grace, 1e-3))
            self.on_ask()
            return
        raise Abandoned(f"{name} after {self._asked}", INTERRUPTED if number == signal.SIGINT else PREEMPTED)
