"""Which sizes are captured, which one a step takes, and what fills it up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from photon.device.threads import ThreadDevice
from photon.engine.buckets import bucket_of, crop_buckets, row_buckets
from photon.engine.layout import bucket_layout, decode_layout
from photon.engine.pages import SCRATCH
from photon.engine.rows import NO_PREFIX, RowTable
from photon.engine.slots import Arena, upload


@pytest.mark.parametrize(
    ("most", "buckets"),
    [
        (1, (1,)),
        (3, (1, 2, 3)),
        (16, (1, 2, 4, 8, 16)),
        (17, (1, 2, 4, 8, 16, 17)),
        (24, (1, 2, 4, 8, 16, 24)),
        (64, (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64)),
        (100, (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 100)),
        (160, (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 160)),
    ],
)
def test_buckets_of_rows(most: int, buckets: tuple[int, ...]) -> None:
    assert row_buckets(most) == buckets


@pytest.mark.parametrize(
    ("most", "buckets"), [(1, (1,)), (2, (1, 2)), (5, (1, 2, 4, 5)), (13, (1, 2, 4, 8, 13)), (16, (1, 2, 4, 8, 16))]
)
def test_buckets_of_crops(most: int, buckets: tuple[int, ...]) -> None:
    assert crop_buckets(most) == buckets


def test_every_count_has_a_bucket_that_is_not_much_larger() -> None:
    for most in range(1, 300):
        buckets = row_buckets(most)
        assert list(buckets) == sorted(set(buckets))
        for count in range(1, most + 1):
            bucket = bucket_of(count, buckets)
            assert bucket is not None
            assert count <= bucket < 2 * count or bucket == count == 1
        assert bucket_of(most + 1, buckets) is None
    assert bucket_of(1, ()) is None


PREFIX_LEN, PAGE = 30, 4


def table(device: ThreadDevice) -> RowTable:
    """Three rows: two about a picture on pages 1 to 8, of 5 and 0 tokens, and one without, of 2."""
    made = RowTable(4, 2, 3, 8, device)
    place = made.acquire_prefix([1, 2, 3, 4, 5, 6, 7, 8])
    for length, prefix, pages, adapter in ((5, place, [10, 11], 2), (0, place, [12], 0), (2, NO_PREFIX, [13], 0)):
        base = 0 if prefix == NO_PREFIX else PREFIX_LEN
        row = made.acquire_row(base=base, prefix=prefix, pages=pages, adapter=adapter)
        made.length[row] = length
    return made


@pytest.fixture
def device() -> ThreadDevice:
    return ThreadDevice()


def test_a_bucket_is_filled_up_with_the_dummy_row(device: ThreadDevice) -> None:
    rows, arena = table(device), Arena(device, 200, torch.int64)
    at, layout = bucket_layout(
        arena, rows, np.array([2, 0, 1]), 5, prefix_len=PREFIX_LEN, page_size=PAGE, adapters=True
    )
    upload(arena).run()
    device.close()
    prefix, none = [1, 2, 3, 4, 5, 6, 7, 8], [SCRATCH] * 8
    assert at.tolist() == [2, 0, 1, rows.dummy, rows.dummy]
    assert layout.positions.tolist() == [2, PREFIX_LEN + 5, PREFIX_LEN, 0, 0]
    assert layout.targets.tolist() == [13 * PAGE + 2, 11 * PAGE + 1, 12 * PAGE, SCRATCH, SCRATCH]
    assert layout.offsets.tolist() == [[2], [5], [0], [-1], [-1]]
    assert layout.prefix_lengths.tolist() == [0, PREFIX_LEN, PREFIX_LEN, 0, 0]
    assert layout.prefix_pages.tolist() == [none, prefix, prefix, none, none]
    assert layout.suffix_pages.tolist() == [
        [13, SCRATCH, SCRATCH], [10, 11, SCRATCH], [12, SCRATCH, SCRATCH], [SCRATCH] * 3, [SCRATCH] * 3,
    ]  # fmt: skip
    assert layout.adapters is not None
    assert layout.adapters.tolist() == [0, 2, 0, 0, 0]
    assert rows.length[:3].tolist() == [6, 1, 3]
    assert rows.length[rows.dummy] == 0


def test_a_bucket_says_of_its_rows_what_the_eager_layout_says(device: ThreadDevice) -> None:
    eager, flat = Arena(device, 200, torch.int64), Arena(device, 200, torch.int64)
    rows = np.array([1, 2, 0])
    expected = decode_layout(eager, table(device), rows, prefix_len=PREFIX_LEN, page_size=PAGE)
    _, layout = bucket_layout(flat, table(device), rows, 4, prefix_len=PREFIX_LEN, page_size=PAGE, adapters=False)
    for arena in (eager, flat):
        upload(arena).run()
    device.close()
    assert layout.adapters is None
    for name in ("positions", "targets", "offsets"):
        assert torch.equal(getattr(layout, name)[:3], getattr(expected, name)), name


def test_every_step_of_a_bucket_lies_in_the_same_places(device: ThreadDevice) -> None:
    """What a graph reads; and what is in the way of that is refused."""
    rows, arena = table(device), Arena(device, 200, torch.int64)
    places = []
    for chosen in ([0, 1, 2], [1], []):
        arena.clear()
        at, layout = bucket_layout(
            arena, rows, np.array(chosen, np.int64), 4, prefix_len=PREFIX_LEN, page_size=PAGE, adapters=True
        )
        fields = ("positions", "targets", "offsets", "prefix_lengths", "prefix_pages", "suffix_pages", "adapters")
        places.append([(x.data_ptr(), x.shape) for x in (at, *(getattr(layout, name) for name in fields))])
    device.close()
    assert places[0] == places[1] == places[2]
    with pytest.raises(AssertionError, match="begin where its slot's staging does"):
        bucket_layout(arena, rows, np.array([0]), 4, prefix_len=PREFIX_LEN, page_size=PAGE, adapters=True)


def test_the_dummy_row_is_nobodys(device: ThreadDevice) -> None:
    made = RowTable(2, 1, 3, 8, device)
    device.close()
    taken = [made.acquire_row(base=0, prefix=NO_PREFIX, pages=[5]) for _ in range(made.free_rows)]
    assert sorted(taken) == [0, 1]
    assert made.dummy == 2
    assert made.acquire_prefix([1] * 8) == 0
    assert made.free_prefixes == 0
    assert made.prefix_pages[NO_PREFIX].tolist() == [SCRATCH] * 8
    assert made.pages[made.dummy].tolist() == [SCRATCH] * 3
    assert made.padded(np.array([1]), 3).tolist() == [1, 2, 2]
