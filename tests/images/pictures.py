"""Encoded pictures for the tests."""

import io

import numpy as np
from PIL import Image

from photon.images.decode import DecodePolicy, decode

# 3 wide, 2 high, no two pixels alike, so that each of the eight orientations looks different.
STORED = np.array([[0, 40, 80], [120, 160, 200]], dtype=np.uint8)
SEEN = {
    1: STORED,
    2: STORED[:, ::-1],
    3: STORED[::-1, ::-1],
    4: STORED[::-1],
    5: STORED.T,
    6: np.rot90(STORED, -1),
    7: np.rot90(STORED, 2).T,
    8: np.rot90(STORED, 1),
}


def encode(picture: Image.Image, format: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def oriented(orientation: object, format: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(Image.fromarray(STORED), format, exif=exif)


def pixels(source: object, policy: DecodePolicy | None = None) -> np.ndarray:
    """The decoded picture, checked against what is said of it."""
    rgb, info = decode(source, policy or DecodePolicy())
    assert rgb.mode == "RGB"
    assert (info.width, info.height) == rgb.size
    assert rgb.info == {}
    return np.asarray(rgb)
