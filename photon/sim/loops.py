"""The engine's loop on a clock that the host's housekeeping moves too, and two variants to compare with.

The loop is the engine's own; a variant says in one method where it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from photon.engine.loop import Loop
from photon.engine.record import Span
from photon.engine.scheduler import Scheduler
from photon.engine.step import Step
from photon.engine.work import Kind, Work
from photon.sim.device import SimDevice


class TimedLoop(Loop):
    """``housekeeping``: seconds of the host that a step of so many rows costs, all of them spent at its commit."""

    def __init__(self, device: SimDevice, *rest: Any, housekeeping: Callable[[int], float]) -> None:
        super().__init__(device, *rest)
        self._clock, self._housekeeping = device, housekeeping

    def _wait(self, step: Step) -> Span:
        waited = super()._wait(step)
        self._clock.spend(self._housekeeping(len(step.sequences)))
        return waited


class StrayLoop(TimedLoop):
    """A synchronous copy has slipped into finalize, as in the published story of the mask upload."""

    def finalize(self, step: Step) -> None:
        super().finalize(step)
        self._clock.drain()


class PeekingScheduler(Scheduler):
    """A scheduler that can be asked what comes next. A choice that was looked at is kept: choosing takes things."""

    _next: Work | None = None

    def peek(self) -> Kind | None:
        if self._next is None:
            self._next = super().choose()
        return None if self._next is None else self._next.kind

    def choose(self) -> Work | None:
        if self._next is None:
            return super().choose()
        work, self._next = self._next, None
        return work


class DecodeOnlyLoop(TimedLoop):
    """Pipelined decoding and nothing else: prefill and vision are launched behind no step, and no step behind them."""

    def tick(self, inflight: Step | None) -> Step | None:
        scheduler = self._scheduler
        assert isinstance(scheduler, PeekingScheduler)
        if inflight is not None and (inflight.kind != "decode" or scheduler.peek() not in (None, "decode")):
            self.commit(inflight)
            inflight = None
        return super().tick(inflight)
