"""The two working sets that steps run in: staging on the host, the same on the device, and the landing buffer.

Everything is allocated once. A slot belongs to its step from launch until the commit that has read its landing
buffer; host memory of a slot is never rewritten before that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from photon.device.device import Device, Operation
from photon.skills.grammar import Sample

_MOST_VIEWS = 4096
LANDED = 6
"""Columns of a landing row: those of ``skills.grammar.Sample``."""


class Arena:
    """Numbers on their way to the device: laid one after the other into host memory, copied over in one go.

    ``place`` returns the device's views of what it laid down; they are valid for work ordered after ``upload``.
    """

    def __init__(self, device: Device, capacity: int, dtype: torch.dtype) -> None:
        self.host = device.host_buffer(capacity, dtype=dtype)
        self.device = device.buffer(capacity, dtype=dtype)
        self._numpy: npt.NDArray[np.generic] = self.host.numpy()
        self._access = device.host_access
        self._views: dict[tuple[int, tuple[int, ...]], Tensor] = {}
        self._pairs: dict[int, tuple[Tensor, Tensor]] = {}
        self.used = 0

    def clear(self) -> None:
        self.used = 0

    def laid_down(self) -> tuple[Tensor, Tensor]:
        """What is in use of the device's and of the host's memory."""
        pair = self._pairs.get(self.used)
        if pair is None:
            pair = self._pairs[self.used] = self.device[: self.used], self.host[: self.used]
        return pair

    def place(self, *arrays: npt.NDArray[Any]) -> list[Tensor]:
        """Lay arrays down, one after the other."""
        start = self.used
        laid = np.concatenate([array.ravel() for array in arrays])
        self.used = stop = start + len(laid)
        if stop > len(self._numpy):
            raise AssertionError(f"a step stages {stop} numbers, the slot holds {len(self._numpy)}")
        self._access(writes=(self.host,))
        self._numpy[start:stop] = laid
        views = []
        for array in arrays:
            views.append(self._view(start, array.shape))
            start += array.size
        return views

    def _view(self, start: int, shape: tuple[int, ...]) -> Tensor:
        """The device's memory from ``start`` on. The same view is made once: steps repeat each other."""
        view = self._views.get((start, shape))
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
                self._pairs.clear()
            view = self._views[start, shape] = self.device[start : start + math.prod(shape)].view(shape)
        return view


def upload(*arenas: Arena) -> Operation:
    """Copy what was laid down in the arenas to the device."""
    used = [arena.laid_down() for arena in arenas if arena.used]

    def run() -> None:
        for target, source in used:
            target.copy_(source, non_blocking=True)

    return Operation(run, reads=[source for _, source in used], writes=[target for target, _ in used])


class Slot:
    """One step's buffers.

    ``inputs`` and ``places`` (their float part) are staged at launch, ``controls`` and ``weights`` (likewise) at
    finalize. ``pixels`` uint8 [crops, side, side, 3] is what a vision step encodes. ``hidden`` [rows, dim] is what the
    forward leaves for sampling, ``landing`` float64 [rows, LANDED] what sampling leaves for the host, and ``landed``
    the host's copy of it. ``sampled``: the step's forward samples too, so ``controls`` are staged at launch.
    """

    def __init__(
        self, device: Device, *, rows: int, staged: int, crops: int, side: int, dim: int, dtype: torch.dtype
    ) -> None:
        """``staged``: numbers that the largest step's inputs take. ``side``: of a crop, in pixels."""
        self._access = device.host_access
        self.inputs = Arena(device, staged, torch.int64)
        self.places = Arena(device, 2 * staged, torch.float32)
        self.controls = Arena(device, 16 * rows, torch.int64)
        self.weights = Arena(device, 3 * rows, torch.float32)
        self.pixels = device.buffer(crops, side, side, 3, dtype=torch.uint8)
        self.hidden = device.buffer(rows, dim, dtype=dtype)
        self.landing = device.buffer(rows, LANDED, dtype=torch.float64)
        self.landed = device.host_buffer(rows, LANDED, dtype=torch.float64)
        self._landed = self.landed.numpy()
        self.sampled = False

    def clear(self) -> None:
        self.sampled = False
        for arena in (self.inputs, self.places, self.controls, self.weights):
            arena.clear()

    def read_landed(self, count: int) -> list[Sample]:
        """The first rows of the landing, as the host got them: one list for all, a tuple for each."""
        self._access(reads=(self.landed,))
        landed = self._landed[:count].T
        return list(zip(*landed[:3].astype(np.int64).tolist(), *landed[3:].tolist(), strict=True))


class Slots:
    """Two slots in turn."""

    def __init__(self, slots: Seq[Slot]) -> None:
        self._all = tuple(slots)
        self.reset()

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._all)

    def reset(self) -> None:
        """Take both back, whoever holds them."""
        self._free = list(self._all)

    def acquire(self) -> Slot:
        """The slot that has been free longest. None being free is a bug: depth allows one step in flight per slot."""
        if not self._free:
            raise AssertionError("no slot is free: a step was launched before an older one was committed")
        slot = self._free.pop(0)
        slot.clear()
        return slot

    def release(self, slot: Slot) -> None:
        if slot in self._free:
            raise AssertionError("a slot is released twice")
        self._free.append(slot)

    def check_home(self) -> None:
        if len(self._free) != len(self._all):
            raise AssertionError(f"{len(self._all) - len(self._free)} slots are still out")
