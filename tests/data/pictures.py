"""Encoded pictures for the tests of sources: n small PNGs, no two alike, of which some are not pictures at all."""

from __future__ import annotations

import hashlib
import io

from PIL import Image


def picture(n: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (n % 256, n // 256, 7)).save(file, "PNG")
    return file.getvalue()


def pictures(count: int, corrupt: int = -1) -> list[bytes]:
    return [b"not a picture, row %d" % n if n == corrupt else picture(n) for n in range(count)]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
