"""``decode: fast`` against ``exact``: how far pixels may be apart, and that sizes, frames and crops stay the same."""

from __future__ import annotations

import importlib.metadata
import io
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image

from photon.errors import UsageError
from photon.images.decode import DecodePolicy, decode
from photon.models.config import VisionConfig
from photon.models.tiling import canvas_size, crop_count, cut_crops, select_tiling
from tests.reference import FOLDER

from .pictures import encode

EXACT, FAST = DecodePolicy(), DecodePolicy(decode="fast")
#: Crops of 126 pixels, so that pictures of a megapixel are large ones.
VISION = replace(VisionConfig(), crop_size=126)
CANVAS = partial(canvas_size, vision=VISION)


def photo() -> Image.Image:
    """640 x 427, sharp to the pixel."""
    return Image.open(FOLDER / "images" / "china_427x640.png").convert("RGB")


def smooth(width: int, height: int) -> Image.Image:
    """Red grows to the right and green downwards: any turn and any shift shows, and no detail is lost in small."""
    ramps = [np.linspace(0, 255, side) for side in (width, height)]
    red, green = np.meshgrid(*ramps)
    return Image.fromarray(np.stack((red, green, np.full_like(red, 90)), axis=2).round().astype(np.uint8))


def cut(picture: Image.Image, size: tuple[int, int], *, fast: bool) -> np.ndarray:
    """The crops of ``picture`` by the tiling of a whole one of that width and height."""
    tiling = select_tiling(size[1], size[0], VISION)
    out = np.zeros((crop_count(tiling), VISION.crop_size, VISION.crop_size, 3), np.uint8)
    cut_crops(picture, tiling, VISION, out, fast=fast)
    return out.astype(int)


def crops(source: object, policy: DecodePolicy) -> np.ndarray:
    """As the engine makes them."""
    picture, info = decode(source, policy, CANVAS)
    return cut(picture, (info.width, info.height), fast=policy.fast)


@pytest.mark.parametrize("size", [(640, 427), (1, 1), (900, 3), (2000, 40), (127, 126), (30, 20), (1500, 1500)])
def test_the_resampler_is_within_two_units(size: tuple[int, int]) -> None:
    for picture in (photo().resize(size), Image.effect_noise(size, 90).convert("RGB")):
        apart = np.abs(cut(picture, size, fast=True) - cut(picture, size, fast=False))
        assert apart.max() <= 2
        assert apart.mean() < 0.05


@pytest.mark.parametrize(
    ("size", "scale"),
    [((628, 419), 1), ((630, 420), 2), ((1259, 839), 2), ((1261, 841), 4), ((2520, 1680), 8), ((3000, 440), 2)],
)
def test_a_large_jpeg_is_decoded_smaller(size: tuple[int, int], scale: int) -> None:
    """At an eighth at most, with 1.5 times as many pixels either way as the canvas has."""
    height, width = CANVAS(size[1], size[0])
    data = encode(smooth(*size), "JPEG", quality=95)
    picture, info = decode(data, FAST, CANVAS)
    assert (info.width, info.height) == size
    assert picture.size == (-(-size[0] // scale), -(-size[1] // scale))
    assert picture.width >= 1.5 * width or scale == 1
    assert picture.height >= 1.5 * height or scale == 1
    assert np.abs(crops(data, FAST) - crops(data, EXACT)).max() <= 4


def test_detail_is_what_libjpeg_leaves_of_it() -> None:
    """Nothing but the resampler stands between Pillow's own scaled decoding and the crops."""
    data = encode(photo(), "JPEG", quality=90)
    scaled = Image.open(io.BytesIO(data))
    scaled.draft(None, (252, 210))
    scaled.load()
    assert scaled.size == (320, 214)
    assert np.abs(crops(data, FAST) - cut(scaled, (640, 427), fast=False)).max() <= 2
    assert 1 < np.abs(crops(data, FAST) - crops(data, EXACT)).mean() < 5, "of a sharp picture, it is a price"


def test_only_large_jpegs_and_only_if_asked() -> None:
    data = encode(photo(), "JPEG")
    assert decode(data, FAST, CANVAS)[0].size == (320, 214)
    assert decode(data, EXACT, CANVAS)[0].size == (640, 427)
    assert decode(data, FAST)[0].size == (640, 427), "nobody has said what it is for"
    assert decode(encode(photo(), "PNG"), FAST, CANVAS)[0].size == (640, 427)
    callers = Image.open(io.BytesIO(data))
    assert decode(callers, FAST, CANVAS)[0].size == callers.size == (640, 427), "the caller's stays as it is"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_smaller_picture_is_turned_like_the_whole_one(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(smooth(1201, 701), "JPEG", exif=exif, quality=95)
    for kind in ("apply", "ignore"):
        fast, exact = (DecodePolicy(exif=kind, decode=how) for how in ("fast", "exact"))
        picture, info = decode(data, fast, CANVAS)
        assert info == decode(data, exact, CANVAS)[1]
        assert picture.size == (-(-info.width // 2), -(-info.height // 2))
        assert np.abs(crops(data, fast) - crops(data, exact)).max() <= 4


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_jpegs_are_decoded_smaller_too(mode: str) -> None:
    data = encode(smooth(1200, 700).convert(mode), "JPEG", quality=95)
    picture, info = decode(data, FAST, CANVAS)
    assert (picture.size, info.width, info.mode) == ((600, 350), 1200, mode)
    assert np.abs(crops(data, FAST) - crops(data, EXACT)).max() <= 4


def test_a_torch_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("2.11.1+cpu", "1.13", "unknown"):
        monkeypatch.setattr(importlib.metadata, "version", lambda _, version=version: version)
        with pytest.raises(UsageError, match=r"torch 2\.12 or newer: pip install 'photon-batch\[fast\]', or write ex"):
            DecodePolicy(decode="fast")
    for version in ("2.12.0", "2.13.0+cu130", "3.0"):
        monkeypatch.setattr(importlib.metadata, "version", lambda _, version=version: version)
        assert DecodePolicy(decode="fast").fast
    with pytest.raises(UsageError, match=r"image\.decode must be exact or fast, not 'quick'"):
        DecodePolicy(decode="quick")  # type: ignore[arg-type]
