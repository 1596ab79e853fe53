"""Decoding a JPEG at a half, a quarter or an eighth of its size, which libjpeg does in a fraction of the time.

The pixels are not those of the whole picture resized: how far off they are is told in docs/pixels.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

#: Height and width of a picture in, those of the largest copy that will be made of it out.
Canvas: TypeAlias = Callable[[int, int], tuple[int, int]]
_SPARE = 1.5
"""How much larger than that copy a scaled picture stays at least, either way: detail to resample from."""


def shrink(picture: Image.Image, canvas: Canvas, *, swapped: bool) -> None:
    """Have an opened JPEG that is larger than its ``canvas`` needs decoded smaller; leave any other picture alone.

    ``swapped``: width and height change places when the picture is turned upright.
    """
    if not isinstance(picture, JpegImageFile):
        return
    width, height = picture.size
    rows, columns = reversed(canvas(width, height)) if swapped else canvas(height, width)
    picture.draft(None, (math.ceil(_SPARE * columns), math.ceil(_SPARE * rows)))
