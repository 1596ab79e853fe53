"""Pages, rows and slots: who holds them, and that they come home under pressure."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import photon
from photon.core import Request
from photon.device.threads import ThreadDevice
from photon.engine.engine import Engine
from photon.engine.pages import PagePool
from photon.engine.rows import NO_PREFIX, RowTable
from photon.engine.sizes import choose_sizes
from photon.engine.slots import Slot, Slots
from photon.images.decode import DecodePolicy
from photon.models.load import load_model
from tests.engine import micro
from tests.reference import FOLDER, IMAGES


def test_pages_are_owned_once() -> None:
    pool = PagePool(4, 16)
    pages = pool.acquire(3)
    assert sorted(pages) == [1, 2, 3]  # page 0 is scratch
    with pytest.raises(AssertionError, match="2 pages asked for, 1 free"):
        pool.acquire(2)
    with pytest.raises(AssertionError, match="3 of 4 pages are still out"):
        pool.check_home()
    pool.release(pages[:1])
    with pytest.raises(AssertionError, match="released, but nobody holds it"):
        pool.release(pages[:1])
    pool.release(pages[1:])
    pool.check_home()


def test_rows_are_owned_once() -> None:
    device = ThreadDevice()
    table = RowTable(2, 1, 4, 4, device)
    device.close()
    row = table.acquire_row(base=0, prefix=NO_PREFIX, pages=[1, 2])
    with pytest.raises(AssertionError, match="1 rows and 0 prefixes are still out"):
        table.check_home()
    table.release_row(row)
    with pytest.raises(AssertionError, match="released twice"):
        table.release_row(row)
    table.check_home()


def test_slots_take_turns_and_run_out() -> None:
    device = ThreadDevice()
    slots = Slots([Slot(device, rows=1, staged=8, crops=1, side=2, dim=2, dtype=torch.float32) for _ in range(2)])
    first, second = slots.acquire(), slots.acquire()
    assert first is not second
    with pytest.raises(AssertionError, match="no slot is free"):
        slots.acquire()
    slots.release(first)
    with pytest.raises(AssertionError, match="released twice"):
        slots.release(first)
    assert slots.acquire() is first
    with pytest.raises(AssertionError, match="a step stages 9 numbers, the slot holds 8"):
        first.inputs.place(np.arange(9))
    device.close()


@pytest.mark.parametrize("depth", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("spare_pages", [0, 20, pytest.param(120, marks=pytest.mark.slow)])
def test_the_smallest_pool_serves_everything(depth: int, spare_pages: int) -> None:
    """Four pictures, many questions each, room for barely one request: waves, no deadlock, and the same answers."""
    loaded = load_model("photon://tiny", device=torch.device("cpu"), dtype=torch.float32)
    sizes = choose_sizes(
        loaded.model.config, max_batch=5, device_type="cpu", free_bytes=1 << 40, itemsize=4, memory_fraction=0.9
    )
    tight = replace(sizes, pages=sizes.prefix_pages + sizes.suffix_pages + spare_pages, embeddings=2)
    device = ThreadDevice()
    engine = Engine(loaded, device, tight, depth=depth, decision="masked", stop_repetition=True, policy=DecodePolicy())
    images = [photon.Image(FOLDER / "images" / f"{name}.png") for name in IMAGES]
    asked = [
        Request((i, skill, k), image, skill, f"thing {k}", max_objects=6)
        for i, image in enumerate(images)
        for skill in ("detect", "point")
        for k in range(6)
    ]
    asked += [Request((None, k), None, "query", f"why {k}?", max_tokens=900) for k in range(3)]
    random.Random(depth).shuffle(asked)
    results = {result.id: result for result in engine.run(asked)}
    engine.close()
    assert results.keys() == {request.id for request in asked}
    assert all(result.error is None for result in results.values())
    roomy = photon.Engine.load("photon://tiny", max_batch=16)
    for result in roomy.run(asked):
        assert result.token_ids == results[result.id].token_ids
        places = [(b.x_min, b.y_min, b.x_max, b.y_max) for b in result.objects or ()]
        assert places == [(b.x_min, b.y_min, b.x_max, b.y_max) for b in results[result.id].objects or ()]
    roomy.close()


def test_a_picture_that_is_asked_about_again_does_not_lock_up_a_full_pool() -> None:
    """Room for one prefix. A picture keeps it for a question that is on its way, while another picture waits for it."""
    device = ThreadDevice()
    base = micro.sizes(2)
    engine = micro.engine(device, max_batch=2, pages=base.prefix_pages + base.suffix_pages)
    pictures = (0, 0, 1, 0, 2, 1, 0, 0, 2, 1) * 8
    asks = [("point", picture, i % 30) for i, picture in enumerate(pictures)]
    results = list(engine.run(micro.request(i, *ask) for i, ask in enumerate(asks)))
    assert {r.id: micro.answer(r) for r in results} == {i: micro.alone(*ask) for i, ask in enumerate(asks)}
    engine.close()
