"""Carries whole chunks to a committer on a thread of its own, so that the engine's thread never waits for a disk.

At most ``depth`` chunks wait; past that, ``put`` blocks: the engine slows down before memory fills up.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Protocol

from photon.job.outcome import Outcome
from photon.plan.ledger import Record
from photon.plan.plan import Chunk

log = logging.getLogger(__name__)


class Writer(Protocol):
    """What commits one chunk: ``photon.job.commit.Committer``."""

    def write(self, chunk: Chunk, outcomes: list[Outcome]) -> Record: ...


class Outbox:
    """A bounded queue in front of a writer. An error of the writer is raised by the next ``put`` or by ``close``."""

    def __init__(self, writer: Writer, depth: int = 2) -> None:
        self._writer = writer
        self._queue: queue.Queue[tuple[Chunk, list[Outcome]] | None] = queue.Queue(depth)
        self._error: BaseException | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="writer", daemon=True)
        self._thread.start()

    def put(self, chunk: Chunk, outcomes: list[Outcome]) -> None:
        """Hands over one chunk. Raises ``OutputError`` when an earlier one could not be written."""
        self._raise_error()
        self._queue.put((chunk, outcomes))

    def close(self) -> None:
        """Returns when everything handed over is on disk. Raises ``OutputError`` when something is not."""
        if not self._closed:
            self._queue.put(None)
            self._closed = True
        self._thread.join()  # each time: a signal may have cut the last wait short
        self._raise_error()

    def _write_all(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is not None:
                continue  # drain, so that put never blocks on a thread that gave up
            try:
                record = self._writer.write(*item)
                log.debug("committed chunk %d: %d rows, %d bytes", record.chunk, record.rows, record.bytes)
            except BaseException as error:
                self._error = error

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
