"""Finished rows, gathered by chunk until a chunk is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from photon.job.outcome import Outcome
from photon.plan.plan import Chunk

#: Bytes of pictures that could not be read which an open chunk holds at most.
_SAMPLES = 64 << 20


@dataclass(slots=True)
class _Open:
    chunk: Chunk
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    sampled: int = 0


class Chunks:
    """Rows come in any order; a whole chunk leaves at once, its rows in plan order, through ``send``.

    ``at`` finds the chunk of a place: ``Plan.at``.
    """

    def __init__(self, at: Callable[[int], Chunk], send: Callable[[Chunk, list[Outcome]], None]) -> None:
        self._at = at
        self._send = send
        self._open: dict[int, _Open] = {}
        self._last: _Open | None = None

    def add(self, outcome: Outcome) -> None:
        """Raises ``ValueError`` for a row that comes twice."""
        gathered = self._gathered(outcome.place)
        chunk = gathered.chunk
        if outcome.place in gathered.outcomes:
            raise ValueError(f"row {outcome.place} came twice")
        gathered.outcomes[outcome.place] = _bounded(gathered, outcome)
        if len(gathered.outcomes) == chunk.rows:
            self._send(chunk, _in_order(gathered))  # may be cut short by a signal: then the chunk is still ours
            self._open.pop(chunk.number, None)
            self._last = None

    def _gathered(self, place: int) -> _Open:
        """Mostly that of the row before."""
        last = self._last
        if last is None or not last.chunk.place <= place < last.chunk.place + last.chunk.rows:
            chunk = self._at(place)
            last = self._last = self._open.setdefault(chunk.number, _Open(chunk))
        return last

    def unfinished(self) -> list[tuple[Chunk, list[Outcome]]]:
        """The rows of chunks that are not whole, given away, in plan order."""
        left = [(gathered.chunk, _in_order(gathered)) for _, gathered in sorted(self._open.items())]
        self._open.clear()
        self._last = None
        return left

    @property
    def waiting(self) -> int:
        """Rows of chunks that are not whole yet."""
        return sum(len(gathered.outcomes) for gathered in self._open.values())


def _bounded(gathered: _Open, outcome: Outcome) -> Outcome:
    """Without the bytes of its picture where the chunk holds enough of such."""
    failure = outcome.failure
    if failure is None or failure.sample is None:
        return outcome
    gathered.sampled += len(failure.sample)
    if gathered.sampled <= _SAMPLES:
        return outcome
    return outcome._replace(failure=replace(failure, sample=None))


def _in_order(gathered: _Open) -> list[Outcome]:
    return [gathered.outcomes[place] for place in sorted(gathered.outcomes)]
