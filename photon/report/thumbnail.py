"""A picture made small enough for its share of a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

from PIL import Image

#: The longer side in pixels, the first that fits; the last is taken whatever it comes to, a few kilobytes at most.
_SIDES = (640, 512, 400, 320, 240, 160, 96)
_QUALITY = 80


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """``uri`` holds the picture itself; ``width`` and ``height`` are its pixels."""

    uri: str
    width: int
    height: int


def thumbnail(picture: Image.Image, room: int) -> Thumbnail:
    """``picture`` (RGB) as the largest WebP whose URI takes at most ``room`` characters. Never larger than it is."""
    for side in _SIDES:
        scale = min(1.0, side / max(picture.size))
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        file = io.BytesIO()
        picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0).save(file, "WEBP", quality=_QUALITY)
        uri = "data:image/webp;base64," + base64.b64encode(file.getbuffer()).decode("ascii")
        if len(uri) <= room:
            break
    return Thumbnail(uri, *size)
