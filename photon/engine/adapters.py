"""LoRA adapters in the engine: the bank that holds their weights, and which of them lies in which of its slots.

A slot is a request's from admission until no step holds the request. An adapter that nobody uses stays in its slot
until another one needs it. Slot 0 stands for no adapter and has no place in the bank.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq

import torch
from torch import Tensor

from photon.device.device import Device
from photon.models.config import TextConfig
from photon.models.lora import Adapter, Deltas, shapes

NO_ADAPTER = 0
MOST_SLOTS = 8
"""By default. Every token of a step with adapters is multiplied with all slots' columns."""


class AdapterBank:
    """The adapters' weights: each one's in host memory that uploads can read, and those in the ``slots`` on the device,
    side by side.

    A slot is overwritten by the prefill that first uses its new adapter, so the compute stream orders it after every
    step that reads the old one.
    """

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        *,
        slots: int,
        merged: bool,
        config: TextConfig,
        device: Device,
        dtype: torch.dtype,
    ) -> None:
        self.slots = slots
        self.digests = {name: adapter.digest for name, adapter in adapters.items()}
        self._merged = merged
        rank, layers = max(adapter.rank for adapter in adapters.values()), config.n_layers
        sizes = shapes(config)
        self._down = {m: device.buffer(layers, slots, rank, n, dtype=dtype) for m, (n, _) in sizes.items()}
        self._up = {m: device.buffer(layers, slots, rank, n, dtype=dtype) for m, (_, n) in sizes.items()}
        self._flat = [{m: bank.flatten(1, 2) for m, bank in part.items()} for part in (self._down, self._up)]
        self._owners = torch.arange(1, slots + 1).repeat_interleave(rank).to(device.torch_device)
        self.buffers = [*self._down.values(), *self._up.values()]
        self._kept = {name: self._keep(adapter, rank, device, dtype) for name, adapter in adapters.items()}

    def _keep(self, adapter: Adapter, rank: int, device: Device, dtype: torch.dtype) -> list[Tensor]:
        """The adapter's weights in the order of ``buffers``, [layers, rank, n] each."""
        kept = []
        for tensor in (*adapter.down.values(), *adapter.up.values()):
            memory = device.host_buffer(tensor.shape[0], rank, tensor.shape[2], dtype=dtype)
            device.host_access(writes=(memory,))
            memory[:, : adapter.rank].copy_(tensor)
            kept.append(memory)
        return kept

    def load(self, loads: Seq[tuple[int, str]]) -> None:
        """Part of an operation: adapters, by name, into slots."""
        for slot, name in loads:
            for bank, weights in zip(self.buffers, self._kept[name], strict=True):
                bank[:, slot - 1].copy_(weights, non_blocking=True)

    def sources(self, loads: Seq[tuple[int, str]]) -> list[Tensor]:
        """What ``load`` reads; it writes ``buffers``."""
        return [weights for _, name in loads for weights in self._kept[name]]

    def deltas(self, slots: Tensor) -> Deltas:
        """Part of an operation: what tokens with these ``slots`` [tokens] add."""
        down, up = self._flat
        return Deltas(down, up, (slots[:, None] == self._owners).to(self.buffers[0].dtype), self._merged)


class AdapterSlots:
    """``count`` slots, numbered from 1, by the number of requests that use them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.reset()

    def reset(self) -> None:
        """Take every slot back, whoever holds it, and forget what lies there."""
        self._users = [0] * (self.count + 1)
        self._slot_of: dict[str, int] = {}
        self._unused: dict[int, str | None] = dict.fromkeys(range(1, self.count + 1))  # longest unused first

    def has_room(self, name: str | None) -> bool:
        """Whether the adapter could be used now: it lies in a slot, or a slot is unused."""
        return name is None or name in self._slot_of or bool(self._unused)

    def acquire(self, name: str | None, loads: list[tuple[int, str]]) -> int:
        """A slot for one more user. Where the adapter has yet to be loaded into it, that is added to ``loads``."""
        if name is None:
            return NO_ADAPTER
        slot = self._slot_of.get(name)
        if slot is None:
            slot = next(iter(self._unused))
            if (evicted := self._unused[slot]) is not None:
                del self._slot_of[evicted]
            self._slot_of[name] = slot
            loads.append((slot, name))
        self._unused.pop(slot, None)
        self._users[slot] += 1
        return slot

    def release(self, slot: int) -> None:
        if slot == NO_ADAPTER:
            return
        if not self._users[slot]:
            raise AssertionError(f"adapter slot {slot} is released, but nobody uses it")
        self._users[slot] -= 1
        if not self._users[slot]:
            self._unused[slot] = next(name for name, held in self._slot_of.items() if held == slot)

    def check_home(self) -> None:
        if any(self._users):
            raise AssertionError(f"{sum(self._users)} uses of adapter slots are still out")
