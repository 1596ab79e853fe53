"""A stretch of code in which Pillow's warnings are ignored, in this thread only.

Pillow warns about broken files, which we report by code instead. ``warnings.catch_warnings`` swaps the filters of the
whole process, so that threads which decode side by side would undo each other; and under ``-W error`` a warning in the
middle of a decoder would cost the picture. So one filter is laid that matches nothing outside of ``quiet()``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_inside = threading.local()
_laying = threading.Lock()


class _PillowHere:
    """Stands where a filter has its module pattern: matches Pillow's modules in a thread that is inside quiet()."""

    def match(self, module: str) -> bool:
        return getattr(_inside, "depth", 0) > 0 and module.startswith("PIL")


_FILTER = ("ignore", None, Warning, _PillowHere(), 0)


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what Pillow warns of inside of the ``with``, in this thread, whatever filters are set."""
    _lay_filter()
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def _lay_filter() -> None:
    filters: list[object] = warnings.filters  # type: ignore[assignment]  # typeshed calls it a read-only sequence
    if filters and filters[0] is _FILTER:
        return
    with _laying:
        # In front of whoever came later; first in, then out, so that no thread ever finds it missing.
        filters.insert(0, _FILTER)
        for later in range(len(filters) - 1, 0, -1):
            if filters[later] is _FILTER:
                del filters[later]
