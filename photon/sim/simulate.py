"""An engine on a virtual card: the loop, scheduler, slots, rows and pages are real, the arithmetic is a stop-watch.

Says what a run took by the engine's own trace. Every figure is simulated; see docs/simulation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from photon.engine.admission import Admission
from photon.engine.pages import PagePool
from photon.engine.record import StepRecord
from photon.engine.ring import CropRing
from photon.engine.rows import RowTable
from photon.engine.sizes import choose_sizes
from photon.engine.slots import Slot, Slots
from photon.engine.step import Step
from photon.engine.trace import Trace
from photon.errors import EngineError
from photon.models.config import MoondreamConfig
from photon.sim.device import SimDevice
from photon.sim.forward import ScriptedForward
from photon.sim.loops import DecodeOnlyLoop, PeekingScheduler, StrayLoop, TimedLoop
from photon.sim.profile import Profile
from photon.sim.workload import Feed, Mix

Variant = Literal["shared", "decode-only", "stray"]
_LOOPS: dict[Variant, type[TimedLoop]] = {"shared": TimedLoop, "decode-only": DecodeOnlyLoop, "stray": StrayLoop}
_MEMORY = 64 << 30


class Simulation:
    """One run: ``mixes`` in turn, ``limit`` requests in all or no end to them."""

    def __init__(
        self, profile: Profile, mixes: list[Mix], *, depth: int, variant: Variant = "shared", limit: int | None = None
    ) -> None:
        config = MoondreamConfig()
        batch = max(mix.streams for mix in mixes)
        sizes = choose_sizes(
            config, max_batch=batch, device_type="cuda", free_bytes=_MEMORY, itemsize=2, memory_fraction=0.9
        )
        device = SimDevice(launch=profile.launch, copy=profile.copy)
        numbers = {"rows": sizes.rows, "staged": sizes.staged, "crops": sizes.slot_crops}
        self._pages = PagePool(sizes.pages, sizes.page_size)
        table = RowTable(sizes.rows, sizes.prefixes, sizes.suffix_pages, sizes.prefix_pages, device)
        self._slots = Slots([Slot(device, **numbers, side=1, dim=1, dtype=torch.float32) for _ in range(2)])
        self._ring = CropRing(device, entries=sizes.ring, crops=sizes.picture_crops, side=1)
        self._scheduler = PeekingScheduler(sizes, self._pages, table, config.prefix_len, lambda prepared: True)
        self.records: list[StepRecord] = []
        self.answered = 0
        self._loop = _LOOPS[variant](
            device,
            ScriptedForward(profile, config.prefix_len),
            self._slots,
            self._scheduler,
            self._ring,
            Admission(config.prefix_len, config.text.max_context, sizes.page_size),
            depth,
            Trace(self.records.append),
            housekeeping=profile.commit,
        )
        self._feed = Feed(mixes, self._ring, sizes.ring, limit)
        self._inside = batch + 2 * sizes.ring  # the next ones wait decoded, as they do in a job
        self._admitted = 0
        self._inflight: Step | None = None

    def tick(self, *, feed: bool = True) -> bool:
        """One tick of the loop; whether there was anything to do."""
        if feed:
            arrivals = self._feed.take(self._inside - (self._admitted - self.answered))
            self._admitted += len(arrivals)
            self._loop.admit(arrivals)
        before, self._inflight = self._inflight, self._loop.tick(self._inflight)
        self.answered += len(self._loop.results)
        self._loop.results.clear()
        return before is not None or self._inflight is not None

    def run(self, answers: int) -> None:
        """Until so many requests have been answered."""
        while self.answered < answers:
            if not self.tick():
                raise EngineError("the simulated engine is stuck: requests are waiting, and nothing can be launched")

    def finish(self, *, feed: bool = False) -> float:
        """Answer what is left and see everything home. Seconds of the host's clock at the last commit."""
        while self.tick(feed=feed):
            pass
        self._scheduler.check_home()
        self._slots.check_home()
        self._ring.check_home()
        return self.records[-1].commit.end


@dataclass(frozen=True, slots=True)
class Figures:
    """A steady stretch of one run.

    ``ms_per_step``: from end to end of decode steps on the device, of those that follow two more; None if none does.
    ``zombie_share``: of all rows. ``idle_ms_per_step``: of the compute stream, over steps of every kind.
    """

    ms_per_step: float | None
    zombie_share: float
    idle_ms_per_step: float
    requests_per_s: float


def measure(profile: Profile, mix: Mix, *, depth: int, variant: Variant = "shared") -> Figures:
    """Warm up for a round of requests, then measure over a few."""
    simulation = Simulation(profile, [mix], depth=depth, variant=variant)
    simulation.run(mix.streams)
    before, first = simulation.answered, len(simulation.records)
    simulation.run(before + mix.rounds * mix.streams)
    answered, last = simulation.answered - before, len(simulation.records)
    return _figures(simulation.records[first - 1 : last], answered)


def _figures(records: list[StepRecord], answered: int) -> Figures:
    """What lies between the first record's commit and the last one's."""
    steps = records[1:]
    ends = [step.forward.end if step.sample is None else step.sample.end for step in records]
    three = zip(records, records[1:], records[2:], strict=False)
    settled = [at + 2 for at, kinds in enumerate(three) if all(step.kind == "decode" for step in kinds)]
    rows, zombies = sum(step.rows for step in steps), sum(step.zombies for step in steps)
    return Figures(
        ms_per_step=1e3 * sum(ends[at] - ends[at - 1] for at in settled) / len(settled) if settled else None,
        zombie_share=zombies / rows,
        idle_ms_per_step=1e3 * sum(step.idle + step.held for step in steps) / len(steps),
        requests_per_s=answered / (records[-1].commit.end - records[0].commit.end),
    )
