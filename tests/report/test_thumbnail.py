"""Pictures made small enough for a page."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from photon.report.thumbnail import Thumbnail, thumbnail

NOISE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (700, 900, 3), np.uint8))


def opened(small: Thumbnail) -> Image.Image:
    kind, _, data = small.uri.partition(",")
    assert kind == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1280, 960), (640, 480)),
        ((100, 40), (100, 40)),
        ((640, 640), (640, 640)),
        ((3000, 1), (640, 1)),
        ((2, 1300), (1, 640)),
    ],
)
def test_size(size: tuple[int, int], expected: tuple[int, int]) -> None:
    small = thumbnail(Image.new("RGB", size, (200, 30, 60)), 1_000_000)
    assert (small.width, small.height) == opened(small).size == expected
    assert np.abs(np.asarray(opened(small)).astype(int) - (200, 30, 60)).max() < 12


def test_it_takes_no_more_room_than_it_has() -> None:
    sizes = []
    for room in (400_000, 100_000, 20_000):
        small = thumbnail(NOISE, room)
        assert len(small.uri) <= room
        sizes.append(small.width)
    assert sizes == sorted(sizes, reverse=True)
    assert len({*sizes}) == 3


def test_the_smallest_is_taken_in_any_case() -> None:
    small = thumbnail(NOISE, 1)
    assert small.width == 96
    assert len(small.uri) < 12_000
