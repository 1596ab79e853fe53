"""Resizing by LANCZOS, in two makings. ``exact`` is Pillow's: part of the model, since another moves the embeddings.
``fast`` is torch's for CPUs, several times as fast: the same filter with coarser weights, so that values come out up to
a few units of 255 apart. Torch is imported only when ``fast`` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import PIL.Image

Pixels: TypeAlias = npt.NDArray[np.uint8]
#: Height and width in, the picture in that size out: uint8 [height, width, 3].
Resampler: TypeAlias = Callable[[int, int], Pixels]


def exact(picture: PIL.Image.Image) -> Resampler:
    from PIL.Image import Resampling

    return lambda height, width: np.asarray(picture.resize((width, height), Resampling.LANCZOS))


def fast(picture: PIL.Image.Image) -> Resampler:
    """Needs torch 2.12 or newer."""
    import torch
    from torch.nn.functional import interpolate

    # Channels last must show in the stride of the batch, too: else torch makes planes of it, which takes twice as long.
    pixels = torch.from_numpy(np.array(picture))[None].permute(0, 3, 1, 2)

    def resize(height: int, width: int) -> Pixels:
        resized = interpolate(pixels, (height, width), mode="lanczos", antialias=True)
        made: Pixels = resized[0].permute(1, 2, 0).numpy()
        return made

    return resize
