"""Launch and finalize never stop for the device: no operator that brings a value to the host, nor one that makes a
tensor from host data in mid-step.

On a CPU such calls cost nothing and dispatch no operator (tolist, cpu and numpy among them), so they are watched for at
the level of torch's functions; and the tick runs on meta tensors, which have no values to bring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from photon.core import Request
from photon.device.device import Operation
from photon.device.virtual import VirtualDevice
from photon.engine.intake import Arrival, Prepared
from photon.engine.loop import Loop
from photon.engine.scheduler import Scheduler
from photon.models.load import LoadedModel
from photon.models.moondream import Moondream
from photon.skills.registry import script_for
from tests.engine import micro
from tests.engine.instant import InstantDevice

_FORBIDDEN = {
    "item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__array__", "nonzero",
    "argwhere", "masked_select", "unique", "equal", "is_nonzero", "tensor", "as_tensor", "from_numpy", "pin_memory",
}  # fmt: skip


class StopsTheHost(AssertionError):
    pass


class NoSync(TorchFunctionMode):
    """Refuses every call that waits for the device, or that would upload from pageable memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _FORBIDDEN:
            raise StopsTheHost(f"{name} is called")
        if name in ("__getitem__", "__setitem__"):
            for index in args[1] if isinstance(args[1], tuple) else (args[1],):
                if isinstance(index, (list, bool)) or (isinstance(index, Tensor) and index.dtype == torch.bool):
                    raise StopsTheHost(f"{name} with {'a mask' if isinstance(index, Tensor) else 'a list'}")
        if name == "where" and len(args) == 1:
            raise StopsTheHost("where with one argument")
        if name == "to" and torch.device("cpu") in args[1:]:
            raise StopsTheHost("to(cpu)")
        return func(*args, **(kwargs or {}))


def asks() -> list[Request]:
    skills = ("detect", "point", "query", "caption", "query")
    adapters = (None, None, None, *micro.ADAPTERS)
    return [micro.request(i, skills[i % 5], i % 4, i, adapters[i % 6]) for i in range(20)]


def run(spoil: Callable[[Tensor], object] | None = None) -> None:
    engine = micro.engine(VirtualDevice(seed=1), adapter_slots=1)
    if spoil is not None:
        sample = engine._forward.sample

        def spoiled(slot: Any, plan: Any) -> Operation:
            operation = sample(slot, plan)
            return Operation(lambda: (spoil(slot.hidden), operation.run())[1], operation.reads, operation.writes)

        engine._forward.sample = spoiled  # type: ignore[method-assign]
    with NoSync():
        assert len(list(engine.run(asks()))) == 20


def test_no_step_stops_the_host() -> None:
    run()


@pytest.mark.parametrize(
    ("call", "name"),
    [
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
    ],
)
def test_a_planted_call_is_caught(call: Callable[[Tensor], object], name: str) -> None:
    with pytest.raises(Exception, match=name) as caught:
        run(call)
    assert "StopsTheHost" in str(caught.value) or isinstance(caught.value, StopsTheHost)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_tick_runs_without_any_values(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vision, prefill and decode steps, with free, banned, decided, forced and drawn rows, some with adapters, on meta
    tensors."""
    real = micro.loaded()
    model = Moondream(real.model.config)
    model.text.rope = model.text.rope.to("meta")
    monkeypatch.setattr(micro, "loaded", lambda: LoadedModel(model, real.tokens, real.tokenizer, "meta"))
    device = InstantDevice(runs=True, kind="meta")
    engine = micro.engine(device, depth=depth, max_batch=8, adapter_slots=2)
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
    with torch.inference_mode():
        for _ in range(60):
            inflight = loop.tick(inflight)
    assert len(loop.results) == 16
    assert device.ran > 30
