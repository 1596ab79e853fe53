"""A CPU as a device: one worker thread for each stream.

What a CPU run really uses. Torch operators release the interpreter lock, so the engine's bookkeeping and the decoding
of pictures go on while a forward runs.
"""

from __future__ import annotations

import math
import mmap
import queue
import threading
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from photon.device.device import Event, Operation, Stream
from photon.device.memory import available_bytes


class ThreadEvent:
    """Reached once its operation has returned or raised; what it raised is raised again by every ``wait``."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._error: BaseException | None = None
        self._span = (0.0, 0.0)

    def finish(self, started: float, error: BaseException | None) -> None:
        self._span = (started, time.perf_counter())
        self._error = error
        self._reached.set()

    def wait(self, timeout: float | None = None) -> None:
        if not self._reached.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error

    def done(self) -> bool:
        return self._reached.is_set()

    def span(self) -> tuple[float, float]:
        return self._span


_Work = tuple[Operation, tuple[Event, ...], ThreadEvent]


class ThreadDevice:
    def __init__(self) -> None:
        self._queues: dict[Stream, queue.SimpleQueue[_Work | None]] = {}
        self._workers: list[threading.Thread] = []
        for stream in ("compute", "upload", "readback"):
            work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
            worker = threading.Thread(target=_serve, args=(work,), name=f"photon-{stream}", daemon=True)
            self._queues[stream] = work
            self._workers.append(worker)
            worker.start()

    @property
    def torch_device(self) -> torch.device:
        return torch.device("cpu")

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> ThreadEvent:
        event = ThreadEvent()
        self._queues[stream].put((operation, tuple(after), event))
        return event

    @property
    def can_capture(self) -> bool:
        return False

    def capture(self, operation: Operation) -> Callable[[], None]:
        raise RuntimeError("a CPU has no graphs")

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Mapped, so that it takes no memory before it is written, and then by the small page. Torch writes zeros at
        once; numpy asks for huge pages, and a pool that is written here and there would fill one each time."""
        size = math.prod(shape) * dtype.itemsize
        return torch.frombuffer(mmap.mmap(-1, max(size, 1)), dtype=torch.uint8)[:size].view(dtype).view(shape)

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return self.buffer(*shape, dtype=dtype)

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None:
        """Nothing is checked here."""

    def now(self) -> float:
        return time.perf_counter()

    def free_bytes(self) -> int:
        return available_bytes()

    def drain(self) -> None:
        for stream in self._queues:
            self.launch(stream, Operation(lambda: None)).wait()

    def close(self) -> None:
        for work in self._queues.values():
            work.put(None)
        for worker in self._workers:
            worker.join()
        self._queues.clear()


def _serve(work: queue.SimpleQueue[_Work | None]) -> None:
    """Run operations in order. One that failed, or that waited on one that failed, passes the error on."""
    with torch.inference_mode():
        while (item := work.get()) is not None:
            operation, after, event = item
            started, error = time.perf_counter(), None
            try:
                for earlier in after:
                    earlier.wait()
                started = time.perf_counter()
                operation.run()
            except BaseException as raised:
                error = raised
            event.finish(started, error)
            del item, operation, after, event  # keep nothing of a step alive while idle
