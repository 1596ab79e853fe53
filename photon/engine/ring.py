"""Where crops wait for their upload: host memory that the device can copy from without stopping, used over and over.

Decoding threads fill entries; the engine gives one back once the upload that reads it is over. That no entry is free
is the back-pressure on decoding.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import torch
from torch import Tensor

from photon.device.device import Device
from photon.errors import EngineError


@dataclass(frozen=True, slots=True, eq=False)
class RingEntry:
    """``pixels`` uint8 [crops, side, side, 3]: the filled part of the entry. ``tiling``: see ``models.tiling``."""

    number: int
    pixels: Tensor
    tiling: tuple[int, int]


class CropRing:
    """``entries`` of at most ``crops`` crops of ``side`` x ``side`` pixels. Any thread may call."""

    def __init__(self, device: Device, *, entries: int, crops: int, side: int) -> None:
        self._memory = [device.host_buffer(crops, side, side, 3, dtype=torch.uint8) for _ in range(entries)]
        self._access = device.host_access
        self._changed = threading.Condition()
        self.open()

    def open(self) -> None:
        """Take every entry back, whoever holds it, and serve."""
        with self._changed:
            self._free = list(range(len(self._memory)))
            self._closed = False

    def acquire(self, crops: int, tiling: tuple[int, int]) -> RingEntry:
        """An entry to fill, as soon as one is free. Raises ``EngineError`` once the ring is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise EngineError("the engine has stopped taking pictures")
            number = self._free.pop(0)
        pixels = self._memory[number][:crops]
        self._access(writes=(pixels,))
        return RingEntry(number, pixels, tiling)

    def release(self, entry: RingEntry) -> None:
        with self._changed:
            if entry.number in self._free:
                raise AssertionError(f"ring entry {entry.number} is released twice")
            self._free.append(entry.number)
            self._changed.notify()

    def close(self) -> None:
        """Turn away whoever waits or comes."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def check_home(self) -> None:
        if len(self._free) != len(self._memory):
            raise AssertionError(f"{len(self._memory) - len(self._free)} ring entries are still out")
