"""Pillow's modes to 8-bit RGB, each on purpose.

Three of Pillow's own conversions are not used, since they destroy pictures: 16-bit grey is clipped to white, what lies
under transparent pixels comes to light, and CMYK JPEGs that are not Adobe's become negatives. ICC profiles are not
applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

Scale = Literal["full_range", "min_max"]
_BLOCK_PIXELS = 1 << 22  # bounds the temporaries of deep pictures: 32 MB of float64


def to_rgb(picture: Image.Image, background: tuple[int, int, int], scale: Scale, *, ours: bool = False) -> Image.Image:
    """A loaded picture of any mode as a new one of mode RGB; alpha is composited over ``background``.

    Deep grey (16-bit, I, F) is scaled by ``scale``: see ``_range``. The result carries no metadata. ``ours``: nobody
    else has the picture, so what is RGB already need not be copied.
    """
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        rgb = _deep_to_rgb(picture, background, scale)
    elif picture.has_transparency_data:
        rgb = _composite(picture, background)
    elif ours and picture.mode == "RGB":
        rgb = picture._new(picture.im)
    else:
        rgb = (ImageChops.invert(picture) if _is_taken_for_adobes(picture) else picture).convert("RGB")
    rgb.info = {}  # EXIF above all: pixels that were turned must not be turned again
    return rgb


def _is_taken_for_adobes(picture: Image.Image) -> bool:
    """Adobe writes the inks of JPEGs inverted, and says so in a marker. Pillow inverts them back, marker or not."""
    return picture.mode == "CMYK" and picture.format in ("JPEG", "MPO") and "adobe" not in picture.info


def _composite(picture: Image.Image, background: tuple[int, int, int]) -> Image.Image:
    # A copy: Pillow writes the alpha of palettes into the picture that it converts, which may be the caller's.
    # La is premultiplied, and has no way to RGBA in one step.
    picture = picture.convert("LA") if picture.mode == "La" else picture.copy()
    key = picture.info.get("transparency")
    if isinstance(key, tuple) and max(key) > 255:
        # A 48-bit PNG: its samples were cut to their high bytes, so the transparent colour has to be, too.
        picture.info["transparency"] = tuple(v >> 8 for v in key)
    rgba = picture.convert("RGBA")
    canvas = Image.new("RGB", picture.size, background)
    canvas.paste(rgba, (0, 0), rgba.getchannel("A"))
    return canvas


def _deep_to_rgb(picture: Image.Image, background: tuple[int, int, int], scale: Scale) -> Image.Image:
    values = np.asarray(picture)
    low, high = _range(values, scale)
    grey = Image.fromarray(_by_blocks(values, lambda block: _stretch(block, low, high)))
    rgb = grey.convert("RGB")
    key = picture.info.get("transparency")
    if isinstance(key, int):  # a 16-bit PNG with one transparent grey
        mask = Image.fromarray(_by_blocks(values, lambda block: np.where(block == key, 255, 0)))
        rgb.paste(background, (0, 0, *picture.size), mask)
    return rgb


def _range(values: NDArray[Any], scale: Scale) -> tuple[float, float]:
    """The values that become 0 and 255.

    "full_range" takes what the numbers can hold: 0 to 65535 for 16-bit, and for I where its values fit; F, which has no
    range of its own, is 0 to 1 or 0 to 255 where its values fit. Where nothing fits, and for "min_max", it is the
    picture's own extremes, not counting NaN and infinities. A flat picture has no extremes to stretch: it keeps its
    full range where it has one, else it is black.
    """
    low, high = _extremes(values)
    ranges = (1.0, 255.0) if values.dtype.kind == "f" else (65535.0,)
    full = next(((0.0, top) for top in ranges if low >= 0 and high <= top), None)
    if full and (scale == "full_range" or low == high):
        return full
    return low, high


def _extremes(values: NDArray[Any]) -> tuple[float, float]:
    if values.dtype.kind != "f":
        return float(values.min()), float(values.max())
    low = float(np.min(values, initial=np.inf, where=np.isfinite(values)))
    high = float(np.max(values, initial=-np.inf, where=np.isfinite(values)))
    return (low, high) if low <= high else (0.0, 0.0)


def _stretch(block: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """[low, high] to 0..255, to the nearest; NaN to 0, infinities to the ends."""
    span = (high - low) or 1.0
    unit = (block.astype(np.float64) - low) / span
    return np.rint(np.nan_to_num(np.clip(unit, 0.0, 1.0), nan=0.0) * 255.0)


def _by_blocks(values: NDArray[Any], function: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.uint8]:
    """``function`` of blocks of rows, as uint8: a 180-megapixel picture must not become gigabytes of temporaries."""
    out = np.empty(values.shape, dtype=np.uint8)
    rows = max(1, _BLOCK_PIXELS // max(1, values.shape[1]))
    for start in range(0, values.shape[0], rows):
        out[start : start + rows] = function(values[start : start + rows])
    return out
