"""What a run's steps took: running totals always, and a record of each step for whoever listens.

Costs a few microseconds a step, and the same memory however long the run. Knows nothing of files.
"""

from __future__ import annotations

from photon.engine.record import Listener, Span, StepRecord
from photon.engine.slots import Slot
from photon.engine.statistics import Statistics
from photon.engine.step import Step


class Trace:
    """Steps are added in the order of their launch, which is that of the compute stream."""

    def __init__(self, listen: Listener | None = None) -> None:
        self._listen = listen
        self._slots: dict[Slot, int] = {}
        self._steps = {"vision": 0, "prefill": 0, "decode": 0}
        self._count = 0
        self._began = self._until = 0.0  # of the compute stream
        self._busy = self._zombie_seconds = 0.0
        self._rows = self._decode_rows = self._zombie_rows = 0
        self._on_images = self._prefixes = 0

    def add(self, step: Step, zombies: int, wait: Span, commit: Span) -> None:
        """Take in a step at its commit; ``zombies`` of its rows had been finalized before."""
        kind, rows = step.kind, len(step.sequences)
        start, end = step.forward.span()
        sample = Span(*step.sampled.span()) if step.sampled is not None else None
        until, seconds = end, end - start
        if sample is not None:
            until, seconds = sample.end, seconds + sample.seconds
        if not self._count:
            self._began = self._until = start
        idle = start - self._until
        self._until = until
        self._busy += seconds
        self._steps[kind] += 1
        self._rows += rows
        if zombies:
            self._zombie_rows += zombies
            self._zombie_seconds += seconds * zombies / rows
        if kind == "decode":
            self._decode_rows += rows
        elif kind == "prefill":
            self._prefixes += len(step.pictures)
            self._on_images += sum(sequence.prefix is not None for sequence in step.sequences)
        if self._listen is not None:
            self._listen(self._record(step, zombies, wait, commit, Span(start, end), sample, idle))
        self._count += 1

    def _record(
        self, step: Step, zombies: int, wait: Span, commit: Span, forward: Span, sample: Span | None, idle: float
    ) -> StepRecord:
        uploads = [event for event in (step.staged, step.controls) if event is not None]
        return StepRecord(
            number=self._count,
            kind=step.kind,
            slot=self._slots.setdefault(step.slot, len(self._slots)),
            rows=len(step.sequences),
            zombies=zombies,
            pictures=len(step.pictures),
            launch=step.launch,
            finalize=step.finalize,
            wait=wait,
            commit=commit,
            uploads=tuple(Span(*event.span()) for event in uploads),
            forward=forward,
            sample=sample,
            copy=Span(*step.copied.span()) if step.copied is not None else None,
            idle=idle,
            held=sample.start - forward.end if sample is not None else 0.0,
        )

    @property
    def statistics(self) -> Statistics:
        """Of the steps so far."""
        return Statistics(
            steps=dict(self._steps),
            wall_seconds=self._until - self._began,
            busy_seconds=self._busy,
            rows=self._rows,
            decode_rows=self._decode_rows,
            zombie_rows=self._zombie_rows,
            zombie_seconds=self._zombie_seconds,
            requests_on_images=self._on_images,
            prefixes=self._prefixes,
        )
