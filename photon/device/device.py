"""The seam between the engine's ordering and whatever does the arithmetic.

The engine says what runs after what; a device runs it. Three streams: compute, upload (host to device) and readback
(device to host). Work on one stream runs in the order of its launch; across streams only ``after`` orders. ``reads``
and ``writes`` declare what an operation touches, so that a checking device can prove the order sufficient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch

Stream = Literal["compute", "upload", "readback"]


class Event(Protocol):
    """A point in a stream: everything launched there up to it."""

    def wait(self) -> None:
        """Block the host until it is reached. Raises what the operation raised."""

    def done(self) -> bool: ...


class Device(Protocol):
    @property
    def torch_device(self) -> torch.device: ...

    def launch(
        self,
        stream: Stream,
        op: Callable[[], None],
        *,
        reads: Sequence[object] = (),
        writes: Sequence[object] = (),
        after: Sequence[Event] = (),
    ) -> Event:
        """Queue ``op`` and return at once. It starts when the stream is free and all of ``after`` is reached."""

    def buffer(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Zeroed memory of the device, for as long as the engine lives."""

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Zeroed host memory that the device can copy from and to without stopping (pinned where that exists)."""

    def free_bytes(self) -> int:
        """Memory that is left for the engine's pools."""

    def drain(self) -> None:
        """Wait for everything that was launched, whatever became of it. For the end of a run, not for the loop."""

    def close(self) -> None:
        """Wait for what was launched, then stop. Nothing may be launched after."""
