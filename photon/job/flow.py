"""The middle of a run: rows become requests, results become outcomes, outcomes become chunks.

An engine may pull the requests on a thread of its own, and rows that need no request are finished right there; one
lock keeps that apart from the results. Images are not held: a row lets go of its own when its requests do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from photon.core import Request, Result
from photon.data.row import Row
from photon.errors import EngineError, InputError
from photon.job.assemble import Assembler
from photon.job.chunks import Chunks
from photon.job.outcome import Outcome
from photon.job.progress import Progress
from photon.job.questions import Questions
from photon.job.tally import Tally


class Flow:
    """Every row that ``requests`` reads leaves through ``chunks`` once, unless the flow is stopped before."""

    def __init__(
        self, questions: Questions, assembler: Assembler, chunks: Chunks, tally: Tally, progress: Progress
    ) -> None:
        self._questions = questions
        self._assembler = assembler
        self._chunks = chunks
        self._tally = tally
        self._progress = progress
        self._lock = threading.Lock()
        self._stopped = False
        self._read = False  # to the end

    def requests(self, rows: Iterable[Row]) -> Iterator[Request]:
        """The requests about ``rows``, row by row, as they are asked for."""
        for row in rows:
            asked = self._questions.about(row)
            with self._lock:
                if self._stopped:
                    return
                self._deliver(self._assembler.open(row, asked))
            yield from asked.requests
        self._read = True

    def take(self, result: Result) -> None:
        """Takes in one answer. Raises ``OutputError`` when an earlier chunk could not be written."""
        with self._lock:
            self._tally.requests += 1
            self._deliver(self._assembler.take(result))

    def finish(self, total: int | None) -> None:
        """The engine has ended: the last chunk leaves.

        Raises ``EngineError`` when rows are still unanswered or unread, ``InputError`` when they are not ``total``.
        """
        with self._lock:
            self._stopped = True
            if self._assembler.waiting:
                raise EngineError(f"the engine ended and left {self._assembler.waiting} rows unanswered")
            rows = self._tally.rows
            if not self._read:
                raise EngineError(f"the engine ended after {rows} rows, before the input did")
            if total is not None and rows != total:
                raise InputError(f"the input promised {total} rows and gave {rows}; was it changed during the run?")
            self._chunks.finish()

    def stop(self) -> None:
        """Nothing more is read or delivered."""
        with self._lock:
            self._stopped = True

    def _deliver(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self._tally.count(outcome)
            self._chunks.add(outcome.index, outcome.cells)
            self._progress.update(self._tally)
