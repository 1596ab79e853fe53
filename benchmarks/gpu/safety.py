"""Section 2: nothing in a tick waits for the device, copies are from pinned memory on streams of their own, and no
answer hangs on what memory held before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.gpu.correctness import Answers, answer, differences
from benchmarks.gpu.engines import opened
from benchmarks.gpu.rows import Day, Figure, Row, skipped
from photon.core import Image, Request
from photon.engine.engine import Engine
from photon.engine.loop import Loop
from photon.engine.record import StepRecord

_JUNK = 3e4
"""Large and finite: a place in the pool that nobody wrote is multiplied by a zero weight, and 0 x NaN is NaN."""


def section(day: Day) -> Iterator[Row]:
    caught = "sync debug mode sees a planted item()"
    yield day.attempt(caught, _planted_item) if day.cuda else skipped(caught)
    for graphs, depth in product((True, False), (2, 1)):
        way = f"depth {depth}, graphs {'on' if graphs else 'off'}"
        what = f"no synchronisation in launch and finalize, {way}"
        yield day.attempt(what, partial(_watched, day, graphs, depth)) if day.cuda else skipped(what)
    for what, check in (
        ("three streams, none of them the default one", _streams),
        ("host memory of slots and ring is pinned", _pinned),
        ("every copy from the host is from pinned memory", _copies),
    ):
        yield day.attempt(what, partial(check, day)) if day.cuda else skipped(what)
    for graphs, depth in product((True, False), (2, 1)):
        way = f"depth {depth}, graphs {'on' if graphs else 'off'}"
        yield day.attempt(f"answers do not hang on what memory held, {way}", partial(_poisoned, day, graphs, depth))


def requests(count: int) -> list[Request]:
    """Of every skill, about pictures of one and of several crops, and about none."""
    noise = np.random.default_rng(0)
    sizes = ((60, 45), (420, 500), (900, 300))
    pictures = [
        Image(PIL.Image.fromarray(noise.integers(0, 256, (height, width, 3), np.uint8))) for width, height in sizes
    ]
    asked = []
    for number in range(count):
        picture = pictures[number % len(pictures)]
        skill: Any = ("detect", "point", "query", "caption", "query")[number % 5]
        settings: dict[str, Any] = {"max_objects": 1 + number % 4} if skill in ("detect", "point") else {}
        if not settings:
            settings = {"max_tokens": 3 + number % 7, "temperature": float(number % 3 == 0), "seed": number}
        about = None if skill == "query" and number % 4 == 0 else picture
        asked.append(Request(number, about, skill, None if skill == "caption" else f"thing {number}", **settings))
    return asked


def ask(engine: Engine, count: int = 20) -> Answers:
    return {result.id: answer(result) for result in engine.run(requests(count))}


def _tiny(day: Day, *, graphs: bool = False, depth: int = 2) -> Any:
    """Eight rows to a batch, so that buckets are full, half full and of one row."""
    return opened(day, "photon://tiny", graphs=graphs, depth=depth, dtype="float32", max_batch=8)


def _planted_item() -> dict[str, Figure]:
    one = torch.ones(1, device="cuda")
    try:
        with _no_synchronisation():
            one.item()
    except RuntimeError:
        return {}
    raise AssertionError("it does not: the rows below prove nothing")


@contextmanager
def _no_synchronisation() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _watched(day: Day, graphs: bool, depth: int) -> dict[str, Figure]:
    """Of the tick all but the commit, which is there to wait. Where an operation synchronises, its step fails, and with
    it the run."""
    steps: list[StepRecord] = []
    with _tiny(day, graphs=graphs, depth=depth) as engine:
        ask(engine)  # libraries and kernels set themselves up at their first call
        with ExitStack() as stack:
            for name in ("launch", "finalize"):
                stack.enter_context(patch.object(Loop, name, _under_watch(getattr(Loop, name))))
            list(engine.run(requests(20), trace=steps.append))
    return {"steps": Figure(len(steps), "steps")}


def _under_watch(method: Any) -> Any:
    def watched(*arguments: Any) -> Any:
        with _no_synchronisation():
            return method(*arguments)

    return watched


def _streams(day: Day) -> dict[str, Figure]:
    with _tiny(day) as engine:
        handles = {stream.cuda_stream for stream in engine._device._streams.values()}
    if len(handles) != 3 or 0 in handles:
        raise AssertionError(f"the streams' handles are {sorted(handles)}")
    return {}


def _pinned(day: Day) -> dict[str, Figure]:
    with _tiny(day) as engine:
        memory = [*engine._ring._memory, *(slot.landed for slot in engine._slots._all)]
        for slot in engine._slots._all:
            memory += [arena.host for arena in (slot.inputs, slot.places, slot.controls, slot.weights)]
        pageable = [list(one.shape) for one in memory if not one.is_pinned()]
    if pageable:
        raise AssertionError(f"pageable host memory: {pageable}")
    return {"pinned": Figure(sum(one.nbytes for one in memory) / 1e6, "MB")}


class PinnedOnly(TorchDispatchMode):
    """Refuses operators on the device with an argument in pageable host memory, single numbers aside: sync debug mode
    does not see a ``non_blocking`` copy from there, and it holds up the host."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [one for one in (*args, *(kwargs or {}).values(), result) if isinstance(one, Tensor)]
        if any(not one.is_cpu for one in tensors):
            for host in (one for one in tensors if one.is_cpu and one.dim()):
                self.copies += 1
                if not host.is_pinned():
                    raise AssertionError(f"{func} touches pageable host memory {list(host.shape)}")
        return result


def _copies(day: Day) -> dict[str, Figure]:
    """On the engine's thread, where operations are queued."""
    with _tiny(day) as engine:
        launch, mode = engine._device.launch, PinnedOnly()

        def launched(*arguments: Any, **options: Any) -> Any:
            with mode:
                return launch(*arguments, **options)

        engine._device.launch = launched
        ask(engine)
    if not mode.copies:
        raise AssertionError("no copy was seen at all")
    return {"copies": Figure(mode.copies, "copies")}


def _poisoned(day: Day, graphs: bool, depth: int) -> dict[str, Figure]:
    with _tiny(day, graphs=graphs, depth=depth) as engine:
        count = 6 if day.smoke else 20
        expected = ask(engine, count)
        buffers = poison(engine)
        wrong = differences(expected, ask(engine, count))
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(expected)} answers differ: {'; '.join(wrong[:5])}")
    return {"equal": Figure(len(expected), "answers"), "poisoned": Figure(buffers, "buffers")}


def poison(engine: Engine) -> int:
    """Fill what a run leaves behind: the pool with large numbers, everything else in floating point with NaN, integers
    with another row's, pixels with white. The number of buffers."""
    forward = engine._forward
    buffers: list[Tensor] = [forward._pool.keys, forward._pool.values]
    for pool in buffers:
        pool.fill_(_JUNK)
    rest: list[Tensor] = [forward._embeddings, engine._table.next_ids, engine._table.next_values]
    for slot in engine._slots._all:
        arenas = (slot.inputs, slot.places, slot.controls, slot.weights)
        rest += [memory for arena in arenas for memory in (arena.host, arena.device)]
        rest += [slot.pixels, slot.hidden, slot.landing, slot.landed]
    for memory in rest:
        memory.fill_(float("nan") if memory.is_floating_point() else 255 if memory.dtype == torch.uint8 else 1)
    engine._device.drain()
    if forward._pool.keys.is_cuda:
        torch.cuda.synchronize()
    return len(buffers) + len(rest)
