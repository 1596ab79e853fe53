"""A device on which everything is done the moment it is launched: run at once, or never. Nothing is read back: what a
step "sampled" is written into its landing beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from photon.device.device import Event, Operation, Stream


class Reached:
    def wait(self, timeout: float | None = None) -> None: ...

    def done(self) -> bool:
        return True

    def span(self) -> tuple[float, float]:
        return 0.0, 0.0


class InstantDevice:
    """``runs``: whether operations run at all. ``kind``: of the device's memory, "cpu" or "meta"."""

    def __init__(self, *, runs: bool, kind: str = "cpu") -> None:
        self.torch_device = torch.device(kind)
        self._runs, self._event = runs, Reached()
        self.ran = 0

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> Event:
        if self._runs and stream != "readback":
            self.ran += 1
            operation.run()
        return self._event

    @property
    def can_capture(self) -> bool:
        return False

    def capture(self, operation: Operation) -> Callable[[], None]:
        raise RuntimeError("no graphs here")

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device=self.torch_device)

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(*shape, dtype=dtype)

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None: ...

    def now(self) -> float:
        return time.perf_counter()

    def free_bytes(self) -> int:
        return 1 << 40

    def drain(self) -> None: ...

    def close(self) -> None: ...
