"""A CUDA device: three streams made once, an event for every operation, pinned host memory.

Thin on purpose: what runs after what is decided above, and proved on the virtual device. One process drives one GPU;
several GPUs are several processes, each with its own ``CUDA_VISIBLE_DEVICES``. Graphs are ``graphs``' work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from photon.device.device import Event, Operation, Stream
from photon.device.failure import out_of_memory, told
from photon.device.graphs import CudaGraphs
from photon.device.touch import storage_of
from photon.errors import EngineError, UsageError

_POLL_SECONDS = 20e-6
_REBASE_SECONDS = 4.0
"""The runtime tells times as float32 milliseconds: to half a microsecond at 4 s, and to a quarter of a millisecond
after an hour."""
_STREAMS: tuple[Stream, ...] = ("compute", "upload", "readback")


class CudaEvent:
    """Wraps two timed CUDA events around one operation."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.error: BaseException | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Polls: a hung device would never return from a synchronisation, and the engine could not say so."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            if until is not None and time.monotonic() > until:
                raise TimeoutError
            time.sleep(_POLL_SECONDS)
        if self.error is not None:
            raise self.error

    def done(self) -> bool:
        """A failure of the device's own shows here first, as an error of whatever is asked next."""
        if self.error is None:
            try:
                return bool(self.end.query())
            except Exception as error:
                self.error = self._device.failed(error)
        return True

    def span(self) -> tuple[float, float]:
        return self._device.seconds(self.start), self._device.seconds(self.end)


class CudaDevice:
    def __init__(self, index: int = 0) -> None:
        self._torch_device = torch.device("cuda", index)
        self._streams = {name: torch.cuda.Stream(self._torch_device) for name in _STREAMS}
        # The runtime deals streams from a small pool: two objects may be one stream, which orders what should not be.
        if len({stream.cuda_stream for stream in self._streams.values()}) != len(_STREAMS):
            raise RuntimeError("CUDA gave one stream twice; start a fresh process")
        self._graphs = CudaGraphs(self._torch_device)
        self._pinned: set[int] = set()  # addresses of the host memory that we handed out
        self._lost: EngineError | None = None
        self._zero = torch.cuda.Event(enable_timing=True)
        self._zero.record(self._streams["compute"])
        self._zero.synchronize()
        self._zero_seconds = time.perf_counter()

    @property
    def torch_device(self) -> torch.device:
        return self._torch_device

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> CudaEvent:
        """Errors that Python sees while it queues the operation come out of the event, as on other devices.

        Raises ``AssertionError`` at once for an operation on pageable host memory: a bug of the engine's that nothing
        else shows. Such a copy holds up the host, ``non_blocking`` or not, and torch's sync debug mode does not see it.
        """
        self._check_pinned(operation)
        event, on = CudaEvent(self), self._streams[stream]
        event.error = self._lost
        for earlier in after:
            assert isinstance(earlier, CudaEvent)
            event.error = event.error or earlier.error
        if event.error is not None:
            return event
        try:
            for earlier in after:
                on.wait_event(earlier.end)  # type: ignore[attr-defined]
            with torch.cuda.stream(on), torch.inference_mode():
                event.start.record(on)
                operation.run()
                event.end.record(on)
        except Exception as error:
            event.error = self.failed(error)
        return event

    def _check_pinned(self, operation: Operation) -> None:
        """The one assertion for every copy between host and device: whatever an operation touches, it declares."""
        for memory in (*operation.reads, *operation.writes):
            if memory.is_cpu and storage_of(memory) not in self._pinned and memory.numel() and not memory.is_pinned():
                raise AssertionError(
                    f"an operation copies to or from pageable host memory {list(memory.shape)}; take it from "
                    "Device.host_buffer"
                )

    def failed(self, error: Exception) -> Exception:
        """The error that callers get for ``error``. From one that is sticky, everything launched later gets it too."""
        known = told(error)
        if known is None:
            return error
        known.__cause__ = error
        if isinstance(known, EngineError):
            self._lost = self._lost or known
        return known

    @property
    def can_capture(self) -> bool:
        return True

    def capture(self, operation: Operation) -> Callable[[], None]:
        return self._graphs.capture(operation)

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Raises ``UsageError`` when the device is out of memory."""
        try:
            return torch.zeros(*shape, dtype=dtype, device=self._torch_device)
        except RuntimeError as error:
            raise self.failed(error) from error

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Pinned. Raises ``UsageError`` where the host has no memory for it."""
        try:
            memory = torch.zeros(*shape, dtype=dtype).pin_memory()
        except RuntimeError as error:
            if not out_of_memory(error):
                raise self.failed(error) from error
            raise UsageError(
                "the host cannot pin enough memory for the device: lower engine.max_batch, or give the process more"
            ) from error
        if not memory.is_pinned():
            raise RuntimeError("host memory cannot be pinned: every copy would stop the engine")
        self._pinned.add(storage_of(memory))
        return memory

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None:
        """Nothing is checked here."""

    def now(self) -> float:
        return time.perf_counter()

    def seconds(self, event: torch.cuda.Event) -> float:
        """When a reached event happened, on the host's clock (to the error of one synchronisation at the start)."""
        since = float(self._zero.elapsed_time(event)) / 1000
        when = self._zero_seconds + since
        if since > _REBASE_SECONDS:
            self._zero, self._zero_seconds = event, when
        return when

    def free_bytes(self) -> int:
        """What the driver has left, once torch has given back what it keeps for later."""
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(self._torch_device)[0])

    def drain(self) -> None:
        """A device that is lost has nothing left to wait for; what lost it comes out of the events."""
        for stream in self._streams.values():
            if self._lost is not None:
                return
            try:
                stream.synchronize()
            except Exception as error:
                self.failed(error)
                if self._lost is None:
                    raise

    def close(self) -> None:
        self.drain()
