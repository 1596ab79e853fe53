"""Encoded pictures for the tests."""

import io
import struct
import zlib

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


def black_png(width: int, height: int) -> bytes:
    """A whole grey PNG, all black, of any size: 388 KB for 400 megapixels, and made without holding those."""
    block = 1 << 20
    size = (width + 1) * height  # each row has a byte for its filter
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    repeated = squeezer.compress(bytes(block)) + squeezer.flush(zlib.Z_FULL_FLUSH)  # may stand any number of times
    rest = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = repeated * (size // block) + rest.compress(bytes(size % block)) + rest.flush()
    checksum = (size % 65521) << 16 | 1  # Adler-32 of zeros
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = b"\x78\xda" + stream + struct.pack(">I", checksum)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    )


def jpeg_that_says(size: tuple[int, int]) -> bytes:
    """A small JPEG whose header names another size in pixels, width and height."""
    data = encode(Image.new("RGB", (16, 16)), "JPEG")
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", *reversed(size)) + data[at + 4 :]


def pixels(source: object, policy: DecodePolicy | None = None) -> np.ndarray:
    """The decoded picture, checked against what is said of it."""
    rgb, info = decode(source, policy or DecodePolicy())
    assert rgb.mode == "RGB"
    assert (info.width, info.height) == rgb.size
    assert rgb.info == {}
    return np.asarray(rgb)
