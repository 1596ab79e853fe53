"""The seam between the engine's ordering and whatever does the arithmetic.

The engine says what runs after what; a device runs it. Three streams: compute, upload (host to device) and readback
(device to host). Work on one stream runs in the order of its launch; across streams only ``after`` orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

Stream = Literal["compute", "upload", "readback"]


@dataclass(slots=True, eq=False)
class Operation:
    """Work for a stream. It decides nothing when it runs: all that it needs from the host is staged when it is made.

    ``reads`` and ``writes`` are the engine's long-lived buffers that it touches, so that a checking device can prove
    the order of operations sufficient; weights and temporaries are not listed. ``pages`` tells the same of single
    pages of the key/value pool, when asked. ``seconds`` is what it takes on a device that only pretends.
    """

    run: Callable[[], None]
    reads: Sequence[Tensor] = ()
    writes: Sequence[Tensor] = ()
    pages: Callable[[], Pages] | None = None
    seconds: float = 0.0


class Pages(NamedTuple):
    """Page numbers that an operation reads and writes."""

    reads: frozenset[int]
    writes: frozenset[int]


class Event(Protocol):
    """A point in a stream: everything launched there up to it."""

    def wait(self, timeout: float | None = None) -> None:
        """Block the host until it is reached. Raises what it raised, or ``TimeoutError`` after ``timeout`` seconds."""

    def done(self) -> bool: ...

    def span(self) -> tuple[float, float]:
        """When the operation started and ended, in seconds on the device's clock. Only after ``wait``."""


class Device(Protocol):
    @property
    def torch_device(self) -> torch.device: ...

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> Event:
        """Queue the operation and return at once. It starts when the stream is free and all of ``after`` is reached."""

    @property
    def can_capture(self) -> bool:
        """Whether ``capture`` works: a device without graphs runs everything operator by operator."""

    def capture(self, operation: Operation) -> Callable[[], None]:
        """Record what ``operation`` runs, once; the result replays it, from operations on the compute stream alone.

        What is replayed is frozen: the same kernels on the same addresses, with every number and branch that Python
        chose while it was recorded. So it reads what changes from ``reads`` and leaves what it makes in ``writes``;
        other memory that it takes is shared by all that is captured. It may not wait for the device. It is run a few
        times first: what it changes is the caller's to put back. Not for the loop: it waits for the device.

        Raises ``ForeignTensorError`` for memory that is not the device's, whatever the recording raises, and
        ``RuntimeError`` where ``can_capture`` is false.
        """

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Zeroed memory of the device, for as long as the engine lives."""

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Zeroed host memory that the device can copy from and to without stopping (pinned where that exists)."""

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None:
        """The host is about to read or write these host buffers. Checked by a checking device, free on others."""

    def now(self) -> float:
        """Seconds on the clock that ``Event.span`` uses."""

    def free_bytes(self) -> int:
        """Memory that is left for the engine's pools."""

    def drain(self) -> None:
        """Wait for everything that was launched, whatever became of it. For the end of a run, not for the loop."""

    def close(self) -> None:
        """Wait for what was launched, then stop. Nothing may be launched after."""
