"""From one RGB picture to the crops that the vision encoder sees.

Pillow's LANCZOS on uint8 is part of the model: another resampler moves the embeddings. Importing this imports no torch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from photon.models import resample
from photon.models.config import VisionConfig
from photon.models.resample import Pixels

if TYPE_CHECKING:
    import PIL.Image


def select_tiling(height: int, width: int, vision: VisionConfig) -> tuple[int, int]:
    """Rows and columns of tiles for a picture of that size in pixels, at most ``max_crops`` together.

    Measured after the margin is taken off: a picture that fits one window along either side gets one tile; else as
    many windows as cover it, stretched along its aspect ratio while the budget lasts, or shrunk to the budget.
    """
    height, width = height - vision.margin, width - vision.margin
    window, budget = vision.window, vision.max_crops
    if height <= window or width <= window:
        return 1, 1
    rows, cols = math.ceil(height / window), math.ceil(width / window)
    if rows * cols > budget:
        shrink = math.sqrt(budget / (rows * cols))
        return max(1, math.floor(rows * shrink)), max(1, math.floor(cols * shrink))
    rows = max(math.floor(math.sqrt(budget * height / width)), rows)
    cols = max(math.floor(math.sqrt(budget * width / height)), cols)
    if rows * cols > budget:
        if cols > rows:
            cols = budget // rows
        else:
            rows = budget // cols
    return max(1, rows), max(1, cols)


def crop_count(tiling: tuple[int, int]) -> int:
    """Crops of a picture of that tiling. A single tile is bit for bit the whole picture, and is encoded once."""
    return 1 if tiling == (1, 1) else 1 + tiling[0] * tiling[1]


def canvas_size(height: int, width: int, vision: VisionConfig) -> tuple[int, int]:
    """Height and width of the largest resized copy that a picture of that size is cut from."""
    tiling = select_tiling(height, width, vision)
    return (vision.crop_size, vision.crop_size) if tiling == (1, 1) else _tiled_size(tiling, vision)


def cut_crops(
    picture: PIL.Image.Image, tiling: tuple[int, int], vision: VisionConfig, out: Pixels, *, fast: bool = False
) -> None:
    """Cut an RGB picture into ``out``, uint8 [crop_count, crop, crop, 3]: the whole first, then the tiles row by row.

    The aspect ratio is not kept, small pictures are enlarged. ``fast``: see ``models.resample``; without it, every bit
    is the reference's.
    """
    crop, window = vision.crop_size, vision.window
    rows, cols = tiling
    resize = resample.fast(picture) if fast else resample.exact(picture)
    out[0] = resize(crop, crop)
    if tiling == (1, 1):
        return
    resized = resize(*_tiled_size(tiling, vision))
    for i in range(rows):
        for j in range(cols):
            y, x = i * window, j * window
            out[1 + i * cols + j] = resized[y : y + crop, x : x + crop]


def _tiled_size(tiling: tuple[int, int], vision: VisionConfig) -> tuple[int, int]:
    rows, cols = tiling
    return rows * vision.window + vision.margin, cols * vision.window + vision.margin
