"""A device without hardware: a virtual clock, execution as late as the order allows, and a happens-before checker.

Operations run for real, on CPU tensors, but only when something waits for them or a seeded dice roll says so: an order
that is not enforced will sooner or later not happen. Independently of the dice, vector clocks prove for every access
that the order was enforced: two accesses to one buffer, one of them a write, must be ordered by a stream, an event or a
wait. Declarations are not trusted: a dispatch mode records which of the engine's buffers an operation really touches.
Time is simulated: an operation takes the ``seconds`` that it names, and the host what ``HostCosts`` says.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from photon.device.device import Event, Operation, Stream
from photon.device.touch import Touched, record_touches, storage_of

STREAMS: tuple[Stream, ...] = ("compute", "upload", "readback")
HOST = "host"
Clock = dict[str, int]


class RaceError(AssertionError):
    """Two accesses to a buffer that nothing orders, or an access that was not declared."""


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds of host time: for queueing an operation, and for the bookkeeping after a wait."""

    launch: float = 0.0
    commit: float = 0.0


@dataclass(eq=False, slots=True)
class _Access:
    actor: str
    at: int
    what: str


@dataclass(eq=False, slots=True)
class _Buffer:
    name: str
    written: _Access | None = None
    read: dict[str, _Access] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Queued:
    stream: Stream
    run: Callable[[], None]
    reads: frozenset[int]
    writes: frozenset[int]
    after: tuple[VirtualEvent, ...]
    event: VirtualEvent
    what: str


class VirtualEvent:
    def __init__(self, device: VirtualDevice, clock: Clock, start: float, end: float) -> None:
        self._device = device
        self.clock = clock
        self.start, self.end = start, end
        self.executed = False
        self.error: BaseException | None = None

    def wait(self, timeout: float | None = None) -> None:
        self._device._wait(self)
        if self.error is not None:
            raise self.error

    def done(self) -> bool:
        """Whether it is reached at the host's present time."""
        return self.end <= self._device.now()

    def span(self) -> tuple[float, float]:
        return self.start, self.end


class VirtualDevice:
    """``seed`` drives when operations run; ``check`` turns the checker on. Use from one thread."""

    def __init__(self, *, seed: int = 0, check: bool = True, costs: HostCosts = HostCosts()) -> None:
        self._dice = random.Random(seed)
        self._check = check
        self._costs = costs
        self._time = 0.0
        self._clocks: dict[str, Clock] = {name: {} for name in (*STREAMS, HOST)}
        self._busy_until: dict[str, float] = dict.fromkeys(STREAMS, 0.0)
        self._queues: dict[str, deque[_Queued]] = {stream: deque() for stream in STREAMS}
        self._buffers: dict[int, _Buffer] = {}
        self._kept: list[Tensor] = []  # an address must not be used again while we know it by name
        self._paged: set[int] = set()
        self._lock = threading.RLock()
        self._sealed = False
        self.launched = 0

    @property
    def torch_device(self) -> torch.device:
        return torch.device("cpu")

    def now(self) -> float:
        """Simulated seconds on the host's clock."""
        return self._time

    def spend(self, seconds: float) -> None:
        """The host is busy for so long."""
        self._time += seconds

    def order_by_pages(self, *pools: Tensor) -> None:
        """From here on, accesses to these buffers are ordered page by page, by what operations say of ``pages``."""
        self._paged.update(map(storage_of, pools))

    def seal(self) -> None:
        """From here on, asking for memory is an error: the loop must not."""
        self._sealed = True

    @property
    def can_capture(self) -> bool:
        return False

    def capture(self, operation: Operation) -> Callable[[], None]:
        raise RuntimeError("a virtual device has no graphs")

    def buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return self._register(torch.zeros(*shape, dtype=dtype), f"device{list(shape)}")

    def host_buffer(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return self._register(torch.zeros(*shape, dtype=dtype), f"host{list(shape)}")

    def free_bytes(self) -> int:
        return 1 << 40

    def launch(
        self,
        stream: Stream,
        operation: Operation,
        after: Sequence[Event] = (),
    ) -> VirtualEvent:
        events = tuple(event for event in after if isinstance(event, VirtualEvent))
        self.launched += 1
        self._time += self._costs.launch
        with self._lock:
            clock = _join(self._clocks[stream], self._clocks[HOST], *(event.clock for event in events))
        clock[stream] = clock.get(stream, 0) + 1
        self._clocks[stream] = clock
        start = max(self._time, self._busy_until[stream], *(event.end for event in events), 0.0)
        end = start + operation.seconds
        self._busy_until[stream] = end
        event = VirtualEvent(self, clock, start, end)
        what = f"{stream} operation {self.launched}"
        reads, writes = (frozenset(map(storage_of, tensors)) for tensors in (operation.reads, operation.writes))
        pages = operation.pages() if operation.pages is not None else None
        self._order(stream, clock, reads - self._paged, writes - self._paged, what)
        if pages is not None:
            # Pages are known by negative numbers, storages by their addresses.
            self._order(stream, clock, _page_keys(pages.reads), _page_keys(pages.writes), what)
        self._queues[stream].append(_Queued(stream, operation.run, reads, writes, events, event, what))
        while self._dice.random() < 0.5 and self._step(self._dice.choice(STREAMS)):
            pass
        return event

    def host_access(self, *, reads: Sequence[Tensor] = (), writes: Sequence[Tensor] = ()) -> None:
        """Also from decoding threads: what they know of the device, the engine's thread told them by the ring."""
        with self._lock:
            clock = _join(self._clocks[HOST])
            clock[HOST] = clock.get(HOST, 0) + 1
            self._clocks[HOST] = clock
            sets = [frozenset(map(storage_of, tensors)) for tensors in (reads, writes)]
            self._order(HOST, clock, sets[0], sets[1], "the host")

    def drain(self) -> None:
        for stream in STREAMS:
            while self._queues[stream]:
                self._execute_until(self._queues[stream][-1])
        self._time = max(self._time, *self._busy_until.values())
        with self._lock:
            self._clocks[HOST] = _join(self._clocks[HOST], *(self._clocks[stream] for stream in STREAMS))

    def close(self) -> None:
        self.drain()

    # The clock and the order.

    def _wait(self, event: VirtualEvent) -> None:
        for queue in self._queues.values():
            for operation in queue:
                if operation.event is event:
                    self._execute_until(operation)
                    break
        self._time = max(self._time, event.end) + self._costs.commit
        with self._lock:
            self._clocks[HOST] = _join(self._clocks[HOST], event.clock)

    def _order(self, actor: str, clock: Clock, reads: frozenset[int], writes: frozenset[int], what: str) -> None:
        """Check each access against those before it, then remember it."""
        if not self._check:
            return
        with self._lock:
            for address in reads | writes:
                self._order_one(address, _Access(actor, clock[actor], what), clock, address in writes)

    def _order_one(self, address: int, access: _Access, clock: Clock, writes: bool) -> None:
        buffer = self._buffers.get(address)
        if buffer is None:
            if address >= 0:
                raise RaceError(f"{access.what} declares memory that the device did not hand out")
            buffer = self._buffers[address] = _Buffer(f"page {-address}")
        earlier = [buffer.written] if buffer.written else []
        if writes:
            earlier += buffer.read.values()
        for other in earlier:
            if other.at > clock.get(other.actor, 0):
                verb = "writes" if writes else "reads"
                raise RaceError(f"{access.what} {verb} {buffer.name}, and nothing orders it after {other.what}")
        if writes:
            buffer.written, buffer.read = access, {}
        else:
            buffer.read[access.actor] = access

    # Execution, as late as possible.

    def _step(self, stream: Stream) -> bool:
        """Run the stream's next operation if what it comes after has run."""
        queue = self._queues[stream]
        if not queue or not all(event.executed for event in queue[0].after):
            return False
        self._execute(queue.popleft())
        return True

    def _execute_until(self, operation: _Queued) -> None:
        queue = self._queues[operation.stream]
        while not operation.event.executed:
            head = queue[0]
            for event in head.after:
                if not event.executed:
                    self._execute_until(self._find(event))
            self._execute(queue.popleft())

    def _find(self, event: VirtualEvent) -> _Queued:
        return next(op for queue in self._queues.values() for op in queue if op.event is event)

    def _execute(self, operation: _Queued) -> None:
        event = operation.event
        event.executed = True
        failed = next((earlier.error for earlier in operation.after if earlier.error), None)
        if failed is not None:
            event.error = failed
            return
        try:
            with torch.inference_mode():
                if not self._check:
                    operation.run()
                    return
                with record_touches(self._buffers.keys()) as touched:
                    operation.run()
        except BaseException as error:
            event.error = error
            return
        self._compare(operation, touched)

    def _compare(self, operation: _Queued, touched: Touched) -> None:
        """What was touched must have been declared. Raised at once: it is a bug in the engine, not in the operation."""
        for verb, really, declared in (
            ("reads", touched.read, operation.reads | operation.writes),
            ("writes", touched.written, operation.writes),
        ):
            for address in really - declared:
                raise RaceError(f"{operation.what} {verb} {self._buffers[address].name} without having declared it")

    def _register(self, tensor: Tensor, name: str) -> Tensor:
        if self._sealed:
            raise RaceError(f"memory is asked for in the loop: {name}")
        self._kept.append(tensor)
        self._buffers[storage_of(tensor)] = _Buffer(f"buffer {len(self._buffers)} {name}")
        return tensor


def _page_keys(pages: frozenset[int]) -> frozenset[int]:
    return frozenset(-page for page in pages)


def _join(*clocks: Clock) -> Clock:
    joined: Clock = {}
    for clock in clocks:
        for actor, count in clock.items():
            joined[actor] = max(joined.get(actor, 0), count)
    return joined
