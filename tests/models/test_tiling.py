"""Tiling and crops against every row and digest that the reference left."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from photon.models.config import VisionConfig
from photon.models.tiling import crop_count, cut_crops, select_tiling
from photon.models.vision import normalise
from tests.reference import IMAGES, picture, preprocessing


def test_every_tiling_of_the_reference() -> None:
    rows = preprocessing()["tiling_h_w_th_tw"]
    assert len(rows) == 1704
    vision = VisionConfig()
    for height, width, tile_rows, tile_columns in rows:
        assert select_tiling(height, width, vision) == (tile_rows, tile_columns), (height, width)


@pytest.mark.parametrize("name", IMAGES)
def test_crops_are_bit_identical(name: str) -> None:
    facts = preprocessing()["images"][name]
    crops = cut_crops(picture(name), VisionConfig())
    assert list(crops.tiling) == facts["tiling"]
    digests = [hashlib.sha256(crop.tobytes()).hexdigest() for crop in crops.pixels]
    expected = facts["crop_sha256"]
    if crops.tiling == (1, 1):  # the reference encodes the same crop twice
        assert expected[0] == expected[1]
        expected = expected[:1]
    assert digests == expected
    assert crop_count(crops.tiling) == len(crops.pixels)


@pytest.mark.parametrize("name", IMAGES)
def test_pixels_are_rounded_as_the_reference_does(name: str) -> None:
    facts = preprocessing()["images"][name]
    crops = cut_crops(picture(name), VisionConfig())
    pixels = crops.pixels if crops.tiling != (1, 1) else np.concatenate((crops.pixels, crops.pixels))
    normal = normalise(torch.from_numpy(pixels), torch.bfloat16)
    digest = hashlib.sha256(normal.contiguous().view(torch.int16).numpy().tobytes()).hexdigest()
    assert digest == facts["pixel_bf16_sha256"]
