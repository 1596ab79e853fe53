"""A CUDA device: three streams made once, an event for every operation, pinned host memory.

Thin on purpose: what runs after what is decided above, and proved on the virtual device. Telling a device that is out
of memory from one that is broken is not done here yet, nor are the engine's steps captured as graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from photon.device.device import Event, Operation, Stream

_POLL_SECONDS = 20e-6
_STREAMS: tuple[Stream, ...] = ("compute", "upload", "readback")
_WARM_UPS = 3


class CudaEvent:
    """Wraps two timed CUDA events around one operation."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.error: BaseException | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Polls: a hung device would never return from a synchronisation, and the engine could not say so."""
        if self.error is not None:
            raise self.error
        until = None if timeout is None else time.monotonic() + timeout
        while not self.end.query():
            if until is not None and time.monotonic() > until:
                raise TimeoutError
            time.sleep(_POLL_SECONDS)

    def done(self) -> bool:
        return self.error is not None or bool(self.end.query())

    def span(self) -> tuple[float, float]:
        return self._device.seconds(self.start), self._device.seconds(self.end)


class CudaDevice:
    def __init__(self, index: int = 0) -> None:
        self._torch_device = torch.device("cuda", index)
        self._streams = {name: torch.cuda.Stream(self._torch_device) for name in _STREAMS}
        # The runtime deals streams from a small pool: two objects may be one stream, which orders what should not be.
        if len({stream.cuda_stream for stream in self._streams.values()}) != len(_STREAMS):
            raise RuntimeError("CUDA gave one stream twice; start a fresh process")
        self._zero = torch.cuda.Event(enable_timing=True)
        self._zero.record(self._streams["compute"])
        self._zero.synchronize()
        self._zero_seconds = time.perf_counter()

    @property
    def torch_device(self) -> torch.device:
        return self._torch_device

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> CudaEvent:
        """Errors that Python sees while it queues the operation come out of the event, as on other devices."""
        event, on = CudaEvent(self), self._streams[stream]
        for earlier in after:
            assert isinstance(earlier, CudaEvent)
            event.error = event.error or earlier.error
        if event.error is not None:
            return event
        for earlier in after:
            on.wait_event(earlier.end)  # type: ignore[attr-defined]
        try:
            with torch.cuda.stream(on), torch.inference_mode():
                event.start.record(on)
                operation.run()
                event.end.record(on)
        except Exception as error:
            event.error = error
        return event

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device=self._torch_device)

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        memory = torch.zeros(*shape, dtype=dtype).pin_memory()
        if not memory.is_pinned():
            raise RuntimeError("host memory cannot be pinned: every copy would stop the engine")
        return memory

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None:
        """Nothing is checked here."""

    def now(self) -> float:
        return time.perf_counter()

    def seconds(self, event: torch.cuda.Event) -> float:
        """When a reached event happened, on the host's clock (to the error of one synchronisation at the start)."""
        return self._zero_seconds + float(self._zero.elapsed_time(event)) / 1000

    def free_bytes(self) -> int:
        return int(torch.cuda.mem_get_info(self._torch_device)[0])

    def drain(self) -> None:
        for stream in self._streams.values():
            stream.synchronize()

    def close(self) -> None:
        self.drain()


def capture(run: Callable[[], None]) -> Callable[[], None]:
    """``run``'s kernels as one graph; the result replays them on the current stream. Not yet run on a GPU by us.

    ``run`` may not allocate what outlives it nor wait for the device. It is run a few times first, since libraries set
    themselves up at their first call, so the caller has to put back what ``run`` changed.
    """
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            run()
    current.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def replay() -> None:
        graph.replay()

    return replay
