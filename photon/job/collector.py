"""Python's collector of cyclic garbage, called less often while rows go through a job.

A row in flight is some sixty objects, none of them in a cycle, and by default the collector looks at all that live
whenever 700 more have come: 7 % of the time of a job without a model, and nothing found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects that may come, over those that go, before it is called; a caller's own higher number stays.
_YOUNG = 10_000


@contextmanager
def collecting_less() -> Iterator[None]:
    """As long as this is entered. What was set before, and whether it collects at all, is the caller's again after."""
    young, *older = gc.get_threshold()
    if young:  # else it is off
        gc.set_threshold(max(young, _YOUNG), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
