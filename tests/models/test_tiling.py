"""Tiling and crops against every row and digest that the reference left."""

from __future__ import annotations

import hashlib

import pytest
import torch

from photon.models.config import VisionConfig
from photon.models.tiling import crop_count, select_tiling
from photon.models.vision import normalise
from tests.reference import IMAGES, crops, preprocessing


def test_every_tiling_of_the_reference() -> None:
    rows = preprocessing()["tiling_h_w_th_tw"]
    assert len(rows) == 1704
    vision = VisionConfig()
    for height, width, tile_rows, tile_columns in rows:
        assert select_tiling(height, width, vision) == (tile_rows, tile_columns), (height, width)


@pytest.mark.parametrize("name", IMAGES)
def test_crops_are_bit_identical(name: str) -> None:
    facts = preprocessing()["images"][name]
    pixels, tiling = crops(name, VisionConfig())
    assert list(tiling) == facts["tiling"]
    digests = [hashlib.sha256(crop.numpy().tobytes()).hexdigest() for crop in pixels]
    expected = facts["crop_sha256"]
    if tiling == (1, 1):  # the reference encodes the same crop twice
        assert expected[0] == expected[1]
        expected = expected[:1]
    assert digests == expected
    assert crop_count(tiling) == len(pixels)


@pytest.mark.parametrize("name", IMAGES)
def test_pixels_are_rounded_as_the_reference_does(name: str) -> None:
    facts = preprocessing()["images"][name]
    pixels, tiling = crops(name, VisionConfig())
    normal = normalise(pixels if tiling != (1, 1) else torch.cat((pixels, pixels)), torch.bfloat16)
    digest = hashlib.sha256(normal.contiguous().view(torch.int16).numpy().tobytes()).hexdigest()
    assert digest == facts["pixel_bf16_sha256"]
