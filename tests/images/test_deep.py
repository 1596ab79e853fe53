"""More than 8 bits a sample: scaled, not clipped."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from photon.images.decode import DecodePolicy, decode

from .pictures import encode, pixels

POLICY = DecodePolicy()


def ramp16() -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).reshape(256, 256)


@pytest.mark.parametrize(("format", "mode"), [("PNG", "I;16"), ("TIFF", "I;16"), ("TIFF", "I;16B")])
def test_sixteen_bits_are_scaled_not_clipped(format, mode):
    data = big_endian_tiff(ramp16()) if mode == "I;16B" else encode(Image.fromarray(ramp16()), format)
    rgb, info = decode(data, POLICY)
    assert info.mode == mode
    got = np.asarray(rgb)
    assert got.mean() == pytest.approx(127.5, abs=0.01)
    assert np.array_equal(got[..., 0], (ramp16().astype(np.uint32) + 128) // 257)


def big_endian_tiff(values: np.ndarray) -> bytes:
    """A baseline TIFF, MM, one strip of 16-bit grey."""
    height, width = values.shape
    body = values.astype(">u2").tobytes()
    tags = [(256, width), (257, height), (258, 16), (259, 1), (262, 1), (273, 8), (277, 1), (278, height)]
    ifd = (len(tags) + 1).to_bytes(2, "big")
    for tag, value in [*tags, (279, len(body))]:
        ifd += tag.to_bytes(2, "big") + b"\0\4" + (1).to_bytes(4, "big") + value.to_bytes(4, "big")
    return b"MM\0*" + (8 + len(body)).to_bytes(4, "big") + body + ifd + b"\0\0\0\0"


def test_twelve_bits_in_sixteen():
    values = np.linspace(0, 4095, 4096).astype(np.uint16).reshape(64, 64)
    data = encode(Image.fromarray(values))
    assert pixels(data).max() == 16  # dark, as the file says
    stretched = pixels(data, DecodePolicy(scale_16bit="min_max"))
    assert np.array_equal(stretched[..., 0], np.rint(values.astype(float) * 255 / 4095))


def test_sixteen_bits_with_a_transparent_grey():
    values = np.array([[0, 1000, 65535]], dtype=np.uint16)
    data = encode(Image.fromarray(values), transparency=1000)
    assert pixels(data, DecodePolicy(alpha_background="red"))[0].tolist() == [[0] * 3, [255, 0, 0], [255] * 3]


def test_forty_eight_bits_with_a_transparent_colour():
    """Pillow cannot write these: three 16-bit samples, of which it keeps the high bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + struct.pack(">6H", 0x1234, 0x5678, 0x9ABC, 0xFFFF, 0x8000, 0x0000)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0))
    data += chunk(b"tRNS", struct.pack(">3H", 0x1234, 0x5678, 0x9ABC)) + chunk(b"IDAT", zlib.compress(row))
    assert pixels(data + chunk(b"IEND", b""))[0].tolist() == [[255, 255, 255], [255, 128, 0]]


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([0, 257, 65535], [0, 1, 255]),  # fits 16 bits
        ([-100, 0, 100], [0, 128, 255]),  # does not: its own extremes
        ([0, 65535, 131070], [0, 128, 255]),
    ],
)
def test_integers(values, want):
    got = pixels(encode(Image.fromarray(np.array([values], dtype=np.int32)), "TIFF"))
    assert got[0, :, 0].tolist() == want


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 17.4, 255.0], [0, 17, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([np.nan, 0.25, np.inf], [0, 64, 255]),
        ([np.nan, np.nan, np.nan], [0, 0, 0]),
        ([300.0, 300.0, 300.0], [0, 0, 0]),
        ([0.5, 0.5, 0.5], [128, 128, 128]),
    ],
)
def test_floats(values, want):
    got = pixels(encode(Image.fromarray(np.array([values], dtype=np.float32)), "TIFF"))
    assert got[0, :, 0].tolist() == want


def test_big_pictures_are_scaled_in_blocks(monkeypatch):
    data = encode(Image.fromarray(ramp16()))
    whole = pixels(data)
    monkeypatch.setattr("photon.images.modes._BLOCK_PIXELS", 1000)
    assert np.array_equal(pixels(data), whole)
