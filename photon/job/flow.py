"""The middle of a run: rows become requests, results become outcomes, outcomes become chunks.

An engine may pull the requests on a thread of its own, and rows that need no request are finished right there; one
lock keeps that apart from the results. Images are not held: a row lets go of its own when its requests do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from photon.core import Failure, Request, Result
from photon.errors import EngineError
from photon.job.assemble import POISON, Assembler
from photon.job.chunks import Chunks
from photon.job.outcome import Outcome
from photon.job.progress import Progress
from photon.job.questions import Asked, Questions
from photon.job.reading import PlannedRow
from photon.job.suspects import Suspects
from photon.job.tally import Tally
from photon.plan.plan import Chunk


class Flow:
    """Every row that ``requests`` reads leaves through ``chunks`` once, unless the flow is stopped before."""

    def __init__(
        self,
        questions: Questions,
        assembler: Assembler,
        chunks: Chunks,
        tally: Tally,
        progress: Progress,
        suspects: Suspects | None = None,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_lost``: whether nothing more need be read, since too much has failed."""
        self._questions = questions
        self._assembler = assembler
        self._chunks = chunks
        self._tally = tally
        self._progress = progress
        self._suspects = suspects or Suspects()
        self._is_lost = is_lost
        self._lock = threading.Lock()
        self._settled = threading.Condition(self._lock)  # no row is in flight, or the flow was stopped
        self._stopped = self._held = False
        self._read = False  # to the end

    def requests(self, rows: Iterable[PlannedRow]) -> Iterator[Request]:
        """The requests about ``rows``, row by row, as they are asked for."""
        for planned in rows:
            if self._held or self._is_lost():
                return
            alone = planned.place in self._suspects.alone
            if alone and not self._all_answered():
                return
            asked = self._ask(planned)
            with self._lock:
                if self._stopped:
                    return
                self._deliver(self._assembler.open(planned.row, planned.place, asked))
            yield from asked.requests
            del asked, planned
            if alone and not self._all_answered():
                return
        self._read = True

    def take(self, result: Result) -> None:
        """Takes in one answer. Raises ``OutputError`` when an earlier chunk could not be written."""
        with self._lock:
            self._tally.requests += 1
            self._deliver(self._assembler.take(result))
            if not self._assembler.waiting:
                self._settled.notify_all()

    def hold(self) -> None:
        """No further row is taken in; what was asked may still be answered. Can be called from a signal handler."""
        self._held = True

    @property
    def is_read(self) -> bool:
        """Whether the input was read to its end."""
        return self._read

    def finish(self) -> None:
        """The engine has ended. Raises ``EngineError`` when rows are still unanswered, or unread and not held."""
        with self._lock:
            self._stopped = True
            if self._assembler.waiting:
                raise EngineError(f"the engine ended and left {self._assembler.waiting} rows unanswered")
            if not self._read and not self._held:
                raise EngineError(f"the engine ended after {self._tally.rows} rows, before the input did")

    def stop(self) -> None:
        """Nothing more is read or delivered."""
        with self._lock:
            self._stopped = self._held = True
            self._settled.notify_all()

    @property
    def unanswered(self) -> list[tuple[int, str]]:
        """Place and id of the rows in flight."""
        return self._assembler.unanswered

    def unfinished(self) -> list[tuple[Chunk, list[Outcome]]]:
        """The finished rows of chunks that are not whole, given away."""
        with self._lock:
            return self._chunks.unfinished()

    def _ask(self, planned: PlannedRow) -> Asked:
        if planned.place in self._suspects.guilty:
            told = (
                "the engine went down each time that this row was in it, alone the last time; --retry-failed asks again"
            )
            return Asked(failed=Failure(POISON, told))
        return self._questions.about(planned.row, planned.place, planned.known)

    def _all_answered(self) -> bool:
        """Waits until no row is in flight. False when the flow was stopped."""
        with self._lock:
            self._settled.wait_for(lambda: self._stopped or not self._assembler.waiting)
            return not self._stopped

    def _deliver(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self._tally.count(outcome)
            self._chunks.add(outcome)
            self._progress.update(self._tally)
