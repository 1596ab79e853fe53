"""Engines that are wrong on purpose: each of the bugs that this architecture invites is flagged, whatever the dice say.

The right engine passes the same checks with the same seeds, so the checker can both fail and pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from photon.device.device import Operation, Pages
from photon.device.virtual import RaceError, VirtualDevice
from photon.engine.engine import Engine
from photon.engine.scheduler import Scheduler
from photon.errors import EngineError
from tests.engine import micro

SEEDS = range(12)
POISON = 1e4
"""Not NaN: what is masked is multiplied by zero, and must come to nothing."""


def build(seed: int) -> tuple[Engine, VirtualDevice]:
    """An engine on a checking device; pages are poisoned, from another stream, the moment they are released."""
    device = VirtualDevice(seed=seed)
    engine = micro.engine(device, max_batch=3)
    pool = engine._forward._pool
    device.order_by_pages(pool.keys, pool.values)
    release = engine._pages.release

    def poison(pages: list[int]) -> None:
        freed = list(pages)

        def run() -> None:
            pool.keys[:, :, freed] = POISON
            pool.values[:, :, freed] = POISON

        writes = lambda: Pages(frozenset(), frozenset(freed))  # noqa: E731
        device.launch("upload", Operation(run, writes=[pool.keys, pool.values], pages=writes))
        release(freed)

    engine._pages.release = poison  # type: ignore[method-assign, assignment]
    return engine, device


def run(seed: int, spoil: Callable[[Engine, VirtualDevice], None] | None = None) -> None:
    engine, device = build(seed)
    if spoil is not None:
        spoil(engine, device)
    device.seal()
    skills = ("detect", "point", "query", "detect", "caption", "point")
    asked = [(skills[(i + seed) % 6], i % 3, seed % 5 + i) for i in range(20)]
    results = list(engine.run(micro.request(i, *ask) for i, ask in enumerate(asked)))
    assert {r.id: micro.answer(r) for r in results} == {i: micro.alone(*ask) for i, ask in enumerate(asked)}


@pytest.mark.parametrize("seed", [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS])
def test_the_engine_as_it_is(seed: int) -> None:
    run(seed)


def early_free(engine: Engine, device: VirtualDevice) -> None:
    """1: pages go home when the result is out, though a step in flight still reads them."""
    real = Scheduler.finalize

    def finalize(self: Scheduler, sequence: Any) -> None:
        real(self, sequence)
        if sequence.inflight_refs > 1:
            self._pages.release(sequence.pages)
            sequence.pages = []

    engine._spoilt = (Scheduler, "finalize", finalize)  # type: ignore[attr-defined]


def shared_staging(engine: Engine, device: VirtualDevice) -> None:
    """2: the host fills staging memory whose upload is in flight, since both slots have the same."""
    first, second = engine._slots._all
    second.inputs = first.inputs


def shared_landing(engine: Engine, device: VirtualDevice) -> None:
    """3: a step's outcome is brought to where the host has not read the last one yet."""
    first, second = engine._slots._all
    second.landed = first.landed


def landing_read_early(engine: Engine, device: VirtualDevice) -> None:
    """3, too: the landing buffer is read without waiting for the read-back."""
    launch = device.launch

    def no_read_back_event(stream: Any, operation: Operation, after: Any = ()) -> Any:
        event = launch(stream, operation, after)
        return after[0] if stream == "readback" else event

    device.launch = no_read_back_event  # type: ignore[method-assign]


def unordered_streams(engine: Engine, device: VirtualDevice) -> None:
    """4: compute uses what upload brings without waiting for it."""
    launch = device.launch
    device.launch = lambda stream, operation, after=(): launch(  # type: ignore[method-assign]
        stream, operation, () if stream == "compute" else after
    )


def memory_in_the_loop(engine: Engine, device: VirtualDevice) -> None:
    """4, too: a buffer made for one step, whose memory may be given to the next while it is in use."""
    decode = engine._forward.decode

    def wasteful(*arguments: Any) -> Operation:
        device.buffer(4, dtype=torch.float32)
        return decode(*arguments)

    engine._forward.decode = wasteful  # type: ignore[method-assign]


def pageable_upload(engine: Engine, device: VirtualDevice) -> None:
    """5: crops are uploaded from memory that is not the ring's, which on a GPU stops the host without a word."""
    upload = engine._forward.upload_crops

    def from_anywhere(slot: Any, pictures: Any) -> Operation:
        return Operation(lambda: None, [torch.zeros(3)], upload(slot, pictures).writes)

    engine._forward.upload_crops = from_anywhere  # type: ignore[method-assign]


def undeclared(engine: Engine, device: VirtualDevice) -> None:
    """An operation that touches more than it says."""
    sample = engine._forward.sample

    def sly(slot: Any, plan: Any) -> Operation:
        operation = sample(slot, plan)
        return Operation(operation.run, operation.reads, [slot.landing])

    engine._forward.sample = sly  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (early_free, r"writes page \d+, and nothing orders it after compute operation"),
        (shared_staging, r"the host writes buffer \d+ host\[\d+\], and nothing orders it after upload operation"),
        (shared_landing, r"buffer \d+ host\[\d+, 6\], and nothing orders it after"),
        (landing_read_early, r"the host reads buffer \d+ host\[\d+, 6\], and nothing orders it after readback"),
        (unordered_streams, r"compute operation \d+ reads buffer \d+ device.*nothing orders it after upload"),
        (memory_in_the_loop, r"memory is asked for in the loop: device\[4\]"),
        (pageable_upload, r"declares memory that the device did not hand out"),
        (undeclared, r"writes buffer \d+ device.* without having declared it"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_engine_is_flagged(
    seed: int, spoil: Callable[[Engine, VirtualDevice], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(engine: Engine, device: VirtualDevice) -> None:
        spoil(engine, device)
        if (patch := getattr(engine, "_spoilt", None)) is not None:
            monkeypatch.setattr(*patch)

    with pytest.raises((RaceError, EngineError), match=message):
        run(seed, spoiled)
