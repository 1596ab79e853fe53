"""A limit in bytes on what several threads hold at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

DECODED_BYTES = 512 << 20
"""Pixels that an engine's decoding threads hold at a time."""


class ByteGate:
    """Lets holders in while they fit into ``capacity`` bytes together; one that is larger than that goes in alone."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = 0
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, amount: int) -> Iterator[None]:
        """Wait for room for ``amount`` bytes, and take it for as long as the block runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + amount <= self._capacity)
            self._held += amount
        try:
            yield
        finally:
            with self._changed:
                self._held -= amount
                self._changed.notify_all()
