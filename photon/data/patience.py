"""Waiting for a server that is busy: which answers pass, and for how long it asks to be left alone."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

#: HTTP statuses that may be gone when one asks again.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 6
_MAX_WAIT = 120.0


def retry_after(header: str | None) -> float | None:
    """Seconds from now that a ``Retry-After`` header asks to wait, in either of its forms. None where there is none."""
    value = (header or "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def backoff(attempt: int, longest: float) -> float:
    """Seconds to wait after ``attempt`` (from 0) failed: twice as long each time, by chance a little more or less."""
    return min(longest, 2.0**attempt) * random.uniform(0.5, 1.0)


def patiently(ask: Callable[[], T], what: str) -> T:
    """What ``ask`` returns. It is called again when it raises for a status that passes, with the pauses that the server
    asks for, two minutes in all; then its error is raised. Other errors are raised at once."""
    left = _MAX_WAIT
    for attempt in range(_TRIES):
        try:
            return ask()
        except Exception as error:
            pause = _pause(error, attempt)
            if pause is None or pause > left or attempt + 1 == _TRIES:
                raise
            log.warning("%s: the server is busy (%s); asking again in %.0f s", what, error, pause)
        left -= pause
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _pause(error: BaseException, attempt: int) -> float | None:
    """How long to wait after ``error``, None where waiting is no use. Libraries hide the answer behind their own."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if response is not None and getattr(response, "status_code", 0) in PASSING:
            asked = retry_after(response.headers.get("Retry-After"))
            return backoff(attempt, 30.0) if asked is None else asked
        cause = cause.__cause__ or cause.__context__
    return None
