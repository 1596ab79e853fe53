"""The eight orientations, applied and ignored, in every format that can say one; and those that are broken."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from photon.images.decode import DecodePolicy, decode

from .pictures import SEEN, STORED, encode, oriented

POLICY = DecodePolicy()
IGNORE = DecodePolicy(exif="ignore")


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(format, orientation):
    data = oriented(orientation, format)
    rgb, info = decode(data, POLICY)
    assert np.array_equal(np.asarray(rgb)[..., 0], SEEN[orientation])
    assert (info.frame, info.exif_orientation) == ("oriented", orientation)
    assert (info.height, info.width) == SEEN[orientation].shape

    rgb, info = decode(data, IGNORE)
    assert np.array_equal(np.asarray(rgb)[..., 0], STORED)
    assert (info.frame, info.exif_orientation, info.width, info.height) == ("stored", orientation, 3, 2)


@pytest.mark.parametrize("format", ["JPEG", "WEBP", "AVIF"])
def test_orientation_as_pillow_transposes(format):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = encode(picture, format, exif=exif)
        want = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        rgb, info = decode(data, POLICY)
        assert info.exif_orientation == orientation
        assert np.array_equal(np.asarray(rgb), np.asarray(want))
        assert np.array_equal(np.asarray(decode(Image.open(io.BytesIO(data)), POLICY)[0]), np.asarray(want))


@pytest.mark.parametrize("format", ["PNG", "TIFF", "JPEG"])
@pytest.mark.parametrize("wrong", [0, 9, 65535])
def test_an_orientation_that_is_none_is_ignored(format, wrong):
    rgb, info = decode(oriented(wrong, format), POLICY)
    assert (info.exif_orientation, info.odd_orientation, rgb.size) == (1, True, (3, 2))


@pytest.mark.parametrize("exif", [b"Exif\0\0", b"Exif\0\0garbage!garbage", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\1\x12"])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
def test_broken_exif_costs_nothing(format, exif):
    """Under the error filter of this suite, too, where Pillow's warning of it is an exception."""
    rgb, info = decode(encode(Image.fromarray(STORED), format, exif=exif), POLICY)
    assert (info.exif_orientation, rgb.size) == (1, (3, 2))


def test_a_png_may_have_its_orientation_behind_the_pixels():
    data = oriented(6, "PNG")
    at = data.index(b"eXIf") - 4
    chunk = data[at : at + 12 + int.from_bytes(data[at : at + 4], "big")]
    moved = data.replace(chunk, b"").replace(b"\0\0\0\0IEND", chunk + b"\0\0\0\0IEND")
    assert moved != data
    assert np.array_equal(np.asarray(decode(moved, POLICY)[0])[..., 0], SEEN[6])
