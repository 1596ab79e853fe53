"""CUDA graphs on a CPU, as far as their rules go: what is captured is a tape of operators on fixed addresses.

Capturing runs the operation once and notes every operator with its arguments and results, by identity. A replay runs
them again in order and writes each result to where it was at capture. So whatever Python decided at capture is frozen,
and a buffer that has been replaced since is not seen, exactly as with a real graph. What a real one refuses is refused:
waiting for a value, shapes that hang on values, memory from the host, and memory that the operation has not declared.
After a replay, everything that is not declared as written is spoiled: on a GPU the next graph may use that memory.

Not told: what a graph would do to kernels that are launched past torch's dispatcher, and anything about speed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from photon.device.device import Operation
from photon.device.graphs import check_devices
from photon.device.threads import ThreadDevice
from photon.device.touch import storage_of
from photon.device.virtual import VirtualDevice
from photon.engine.captured import CapturedForward
from photon.engine.engine import Engine
from tests.engine import micro
from tests.engine.instant import InstantDevice
from tests.engine.no_sync import NoSync

_WAITS = {
    "_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "argwhere", "masked_select", "_unique2",
    "unique_dim", "unique_consecutive", "bincount", "repeat_interleave.Tensor", "lift_fresh",
}  # fmt: skip
_BY_INDEX = {"index", "index_put", "index_put_", "_index_put_impl_"}
SPOILT = 1e30


class CaptureError(RuntimeError):
    """What a stream in capture refuses, or what a graph would get wrong without a word."""


@dataclass(frozen=True, slots=True)
class _Call:
    func: Any
    args: Any
    kwargs: Any
    results: list[Tensor | None]
    """Those with memory of their own; None in place of views and of what was written in place."""


class _Recorder(TorchDispatchMode):
    def __init__(self, hosts: Collection[int]) -> None:
        super().__init__()
        self.calls: list[_Call] = []
        self.external: dict[int, Tensor] = {}
        self.written: set[int] = set()
        self._own: set[int] = set()
        self._hosts = hosts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.__name__.removesuffix(".default")
        if name in _WAITS or name.partition(".")[0] in _WAITS:
            raise CaptureError(f"{func} waits for the device")
        given = _tensors((args, kwargs))
        if name.partition(".")[0] in _BY_INDEX and any(leaf.dtype == torch.bool for leaf in _tensors(args[1])):
            raise CaptureError(f"{func} with a mask waits for the device")
        for leaf in given:
            if storage_of(leaf) not in self._own:
                if storage_of(leaf) in self._hosts:
                    raise CaptureError(f"{func} touches the host's memory")
                self.external[storage_of(leaf)] = leaf
        self._note_writes(func, args, kwargs)
        result = func(*args, **kwargs)
        old = addresses(given)
        fresh = [None if storage_of(leaf) in old else leaf for leaf in _tensors(result)]
        self._own |= addresses(leaf for leaf in fresh if leaf is not None)
        self.calls.append(_Call(func, args, kwargs, fresh))
        return result

    def _note_writes(self, func: Any, args: Any, kwargs: Any) -> None:
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.written |= addresses(_tensors(value))
        assert "out" not in kwargs


class Tape:
    def __init__(self, recorder: _Recorder, declared: set[int]) -> None:
        self._calls = recorder.calls
        self.external = recorder.external
        """Memory that was there before, by address: the engine's buffers, and weights."""
        self.undeclared = recorder.external.keys() - declared
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        for call in self._calls:
            for kept, new in zip(call.results, _tensors(call.func(*call.args, **call.kwargs)), strict=True):
                if kept is not None:
                    kept.copy_(new)
        for call in self._calls:
            for result in call.results:
                if result is not None:
                    result.fill_(SPOILT if result.is_floating_point() else 1)


class Taping:
    """Gives a device graphs."""

    torch_device: torch.device

    def begin(self) -> None:
        self.tapes: list[Tape] = []
        self._hosts: dict[int, Tensor] = {}

    @property
    def can_capture(self) -> bool:
        return True

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        memory: Tensor = super().host_buffer(*shape, dtype=dtype)  # type: ignore[misc]
        self._hosts[storage_of(memory)] = memory
        return memory

    def capture(self, operation: Operation) -> Callable[[], None]:
        check_devices(operation, self.torch_device)
        recorder = _Recorder(self._hosts)
        with torch.inference_mode(), NoSync(), recorder:
            operation.run()
        writes = addresses(operation.writes)
        if undeclared := recorder.written & recorder.external.keys() - writes:
            shapes = [list(recorder.external[at].shape) for at in undeclared]
            raise CaptureError(f"it writes {shapes} without having declared it")
        self.tapes.append(Tape(recorder, addresses(operation.reads) | writes))
        return self.tapes[-1].replay

    def check(self, engine: Engine) -> None:
        """Everything that a tape touches is the engine's memory as it is now: a buffer that the operation declared, or
        a weight. Anything else was made for the occasion, and is gone when the graph is replayed."""
        forward, bank = engine._forward, engine._forward._bank
        weights = addresses(_held(forward._model, forward._sampler) + ([] if bank is None else _held(bank)))
        buffers = addresses(buffers_of(engine).values())
        for tape in self.tapes:
            for at in tape.external.keys() - weights:
                what = f"a graph touches memory {list(tape.external[at].shape)} that"
                if at in tape.undeclared:
                    raise CaptureError(f"{what} its operation does not declare")
                if at not in buffers:
                    raise CaptureError(f"{what} is no buffer of the engine any more")


def buffers_of(engine: Engine) -> dict[str, Tensor]:
    """The engine's long-lived memory on the device, by name."""
    forward, table = engine._forward, engine._table
    found = {name: getattr(table, name) for name in ("next_ids", "next_kinds", "next_values")}
    found |= {"keys": forward._pool.keys, "values": forward._pool.values, "embeddings": forward._embeddings}
    if isinstance(forward, CapturedForward):
        found["features"] = forward._features
    if forward._bank is not None:
        found |= {f"bank {i}": bank for i, bank in enumerate(forward._bank.buffers)}
    for number, slot in enumerate(engine._slots):
        arenas = {name: getattr(slot, name).device for name in ("inputs", "places", "controls", "weights")}
        found |= {f"slot {number} {name}": memory for name, memory in arenas.items()}
        found |= {f"slot {number} {name}": getattr(slot, name) for name in ("pixels", "hidden", "landing")}
    return found


def _held(*owners: Any) -> list[Tensor]:
    """Parameters and buffers of modules, and tensors that other objects hold as attributes."""
    found: list[Tensor] = []
    for owner in owners:
        if isinstance(owner, torch.nn.Module):
            found += [*owner.parameters(), *owner.buffers()]
        else:
            found += [value for value in vars(owner).values() if isinstance(value, Tensor)]
    return found


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def addresses(tensors: Iterable[Tensor]) -> set[int]:
    return {storage_of(tensor) for tensor in tensors}


class TapeThreads(Taping, ThreadDevice):
    """What a CPU run uses, with graphs."""

    def __init__(self) -> None:
        self.begin()
        super().__init__()


class TapeVirtual(Taping, VirtualDevice):
    """The checking device, with graphs: what a replay really touches is checked as of any operation."""

    def __init__(self, **options: Any) -> None:
        self.begin()
        super().__init__(**options)


class MetaGraphs(InstantDevice):
    """Meta tensors have no addresses, so a replay is the operation once more, under the same watch."""

    def __init__(self) -> None:
        super().__init__(runs=True, kind="meta")
        self.replays = 0

    @property
    def can_capture(self) -> bool:
        return True

    def capture(self, operation: Operation) -> Callable[[], None]:
        check_devices(operation, self.torch_device)

        def replay() -> None:
            self.replays += 1
            with NoSync():
                operation.run()

        return replay


def engine(device: Any, **options: Any) -> Engine:
    """``micro.engine`` with graphs, on a device of this file; all that it captures is declared."""
    made = micro.engine(device, graphs=True, **options)
    device.check(made)
    return made
