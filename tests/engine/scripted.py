"""An engine whose run is known beforehand: answers of a scripted length, all requests there at the start, and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from photon.core import FinishReason, Request
from photon.device.device import Operation
from photon.device.virtual import HostCosts, VirtualDevice
from photon.engine.engine import Engine
from photon.engine.intake import Arrival, Intake
from photon.engine.record import StepRecord
from photon.skills.grammar import Demand, MaskKind, Sample
from photon.skills.registry import script_for
from photon.skills.skill import Script, SkillContext
from tests.engine import micro

MILLISECOND = 1e-3
HOST = HostCosts(launch=0.01 * MILLISECOND, commit=0.3 * MILLISECOND)


@dataclass(frozen=True)
class Ask:
    """One request. ``samples`` end it; ``told`` beforehand, as a cap is, or only by the last of them, as an end token
    does. ``held``: every mask needs the token before."""

    id: str
    samples: int
    picture: int | None = None
    held: bool = False
    told: bool = False

    def request(self) -> Request:
        about = None if self.picture is None else micro.image(self.picture)
        return Request(self.id, about, "query", self.id)


@dataclass
class ScriptedGrammar:
    """Ends with its ``samples``-th sample, whatever it is."""

    ask: Ask
    tokens: list[int] = field(default_factory=list)

    @property
    def mask(self) -> MaskKind:
        return MaskKind.GRAMMAR if self.ask.held else MaskKind.NONE

    @property
    def max_samples(self) -> int:
        return self.ask.samples if self.ask.told else 99

    def demand(self, nth: int) -> Demand:
        return Demand.text()

    def advance(self, sample: Sample) -> FinishReason | None:
        self.tokens.append(sample[0])
        return "stop" if len(self.tokens) == self.ask.samples else None


class PatientIntake(Intake):
    """Delivers nothing before everything is there, then in order of the requests' ids."""

    def poll(self, *, wait: bool, timeout: float | None = None) -> list[Arrival]:
        with self._lock:
            while not self._drained and self._error is None:
                self._arrived.wait()
        return sorted(super().poll(wait=wait), key=lambda arrival: str(arrival.request.id))


def costly(engine: Engine, costs: dict[str, float]) -> None:
    """Give the engine's operations their seconds, by name of the method that makes them."""
    for name, seconds in costs.items():
        make: Any = getattr(engine._forward, name)

        def made(*given: Any, _make: Any = make, _seconds: float = seconds) -> Operation:
            operation: Operation = _make(*given)
            return replace(operation, seconds=_seconds)

        setattr(engine._forward, name, made)


def engine(
    asks: Sequence[Ask],
    patch: pytest.MonkeyPatch,
    *,
    depth: int = 2,
    max_batch: int = 8,
    host: HostCosts = HOST,
    **costs: float,
) -> Engine:
    """A micro engine on a virtual device that will be asked ``asks``. ``costs`` are milliseconds."""
    by_id = {ask.id: ask for ask in asks}

    def scripted(request: Request, context: SkillContext) -> Script:
        grammar = ScriptedGrammar(by_id[str(request.id)])
        return Script(script_for(request, context).prompt, grammar, lambda: {"text": ""})

    patch.setattr("photon.engine.engine.Intake", PatientIntake)
    patch.setattr("photon.engine.engine.script_for", scripted)
    made = micro.engine(VirtualDevice(costs=host), depth=depth, max_batch=max_batch)
    chosen = {"vision": 3.0, "prefill": 2.0, "decode": 1.0, "sample": 0.2, "read_back": 0.05, "upload_crops": 0.5}
    costly(made, {name: value * MILLISECOND for name, value in (chosen | costs).items()})
    return made


def records(asks: Sequence[Ask], patch: pytest.MonkeyPatch, **options: Any) -> tuple[list[StepRecord], Engine]:
    """The records of a whole run, and the engine after it."""
    made = engine(asks, patch, **options)
    gathered: list[StepRecord] = []
    results = list(made.run((ask.request() for ask in asks), trace=gathered.append))
    assert sorted(str(result.id) for result in results) == sorted(ask.id for ask in asks)
    assert all(result.error is None for result in results)
    return gathered, made
