"""Launch and finalize never stop for the device: no operator that brings a value to the host, nor one that makes a
tensor from host data in mid-step.

On a CPU such calls cost nothing and dispatch no operator (tolist, cpu and numpy among them), so they are watched for at
the level of torch's functions; and the tick runs on meta tensors, which have no values to bring.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from photon.core import Request
from photon.device.device import Operation
from photon.device.virtual import VirtualDevice
from photon.engine.intake import Arrival, Prepared
from photon.engine.loop import Loop
from photon.engine.scheduler import Scheduler
from photon.models.load import LoadedModel
from photon.models.moondream import Moondream
from photon.skills.registry import script_for
from tests.engine import micro, tape
from tests.engine.instant import InstantDevice
from tests.engine.no_sync import NoSync, StopsTheHost


def asks() -> list[Request]:
    skills = ("detect", "point", "query", "caption", "query")
    adapters = (None, None, None, *micro.ADAPTERS)
    return [micro.request(i, skills[i % 5], i % 4, i, adapters[i % 6]) for i in range(20)]


def run(spoil: Callable[[Tensor], object] | None = None, *, graphs: bool = False) -> None:
    if graphs:
        engine = tape.engine(tape.TapeVirtual(seed=1), adapter_slots=1, max_batch=3)
    else:
        engine = micro.engine(VirtualDevice(seed=1), adapter_slots=1)
    if spoil is not None:
        sample = engine._forward.sample

        def spoiled(slot: Any, plan: Any) -> Operation:
            operation = sample(slot, plan)
            return Operation(lambda: (spoil(slot.hidden), operation.run())[1], operation.reads, operation.writes)

        engine._forward.sample = spoiled  # type: ignore[method-assign]
    with NoSync():
        assert len(list(engine.run(asks()))) == 20


@pytest.mark.parametrize("graphs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_step_stops_the_host(graphs: bool) -> None:
    run(graphs=graphs)


CALLS: list[tuple[Callable[[Tensor], object], str]] = [
    (lambda x: x.sum().item(), "item"),
    (lambda x: bool(x.sum() > 0), "__bool__"),
    (lambda x: int(x.sum()), "__int__"),
    (lambda x: x.tolist(), "tolist"),
    (lambda x: x.numpy(), "numpy"),
    (lambda x: x.cpu(), "cpu"),
    (lambda x: x.to(torch.device("cpu")), "to"),
    (lambda x: x.nonzero(), "nonzero"),
    (lambda x: torch.nonzero(x), "nonzero"),
    (lambda x: x[x > 0], "__getitem__ with a mask"),
    (lambda x: x.__setitem__(x > 0, 0.0), "__setitem__ with a mask"),
    (lambda x: x[[0, 0]], "__getitem__ with a list"),
    (lambda x: torch.where(x > 0), "where with one argument"),
    (lambda x: torch.tensor([1.0]).to(x.device), "tensor"),
]


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_a_planted_call_is_caught(call: Callable[[Tensor], object], name: str) -> None:
    with pytest.raises(Exception, match=name) as caught:
        run(call)
    assert "StopsTheHost" in str(caught.value) or isinstance(caught.value, StopsTheHost)


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_a_planted_call_is_not_captured(call: Callable[[Tensor], object], name: str) -> None:
    """As a graph of its own: the capture is refused, by the function's name or by the operator's behind it."""
    device = tape.TapeThreads()
    memory = device.buffer(4, 4, dtype=torch.float32)
    with pytest.raises((StopsTheHost, tape.CaptureError), match=f"{name.partition(' ')[0].strip('_')}|waits"):
        device.capture(Operation(lambda: (call(memory), None)[1], [memory], [memory]))
    device.close()


@pytest.mark.parametrize(
    ("depth", "graphs"),
    [(1, False), (2, False), *(pytest.param(depth, True, marks=pytest.mark.slow) for depth in (1, 2))],
)
def test_the_tick_runs_without_any_values(depth: int, graphs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vision, prefill and decode steps, with free, banned, decided, forced and drawn rows, some with adapters, on meta
    tensors."""
    real = micro.loaded()
    model = Moondream(real.model.config)
    model.text.rope = model.text.rope.to("meta")
    monkeypatch.setattr(micro, "loaded", lambda: LoadedModel(model, real.tokens, real.tokenizer, "meta"))
    device = tape.MetaGraphs() if graphs else InstantDevice(runs=True, kind="meta")
    engine = micro.engine(device, depth=depth, max_batch=8, adapter_slots=2, graphs=graphs)
    prefix_len, adapters = engine._admission.prefix_len, engine._adapters
    scheduler = Scheduler(engine._sizes, engine._pages, engine._table, prefix_len, lambda _: True, adapters)
    loop = Loop(engine._device, engine._forward, engine._slots, scheduler, engine._ring, engine._admission, depth)
    for slot in engine._slots._all:
        slot.landed[:] = torch.tensor([7.0, 3.0, 4.0, 0.25, 0.5, 0.5], dtype=torch.float64)
    prepared: dict[int, Prepared] = {}
    arrivals = []
    for request in asks()[:16]:
        image = request.image
        assert image is not None
        if id(image) not in prepared:
            prepared[id(image)] = Prepared(image, content=engine._ring.acquire(1, (1, 1)), ready=True)
        script = script_for(request, engine._context)
        arrivals.append(Arrival(request, script, prepared[id(image)], 0.0, None))
    loop.admit(arrivals)
    inflight = None
    with torch.inference_mode(), NoSync() if graphs else nullcontext():
        for _ in range(60):
            inflight = loop.tick(inflight)
    assert len(loop.results) == 16
    assert device.ran > 30
    if isinstance(device, tape.MetaGraphs):
        assert engine.facts["graphs"] == {"rows": [1, 2, 4, 8], "crops": [1, 2, 4, 5], "missed": {}}
        assert device.replays > 15
