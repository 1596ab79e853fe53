"""What stands behind the things: gradients, noise, texture, crops of photos, and marks that are none of our kinds.

Also the rule by which a colour stands out against what is behind it.
"""

from __future__ import annotations

import colorsys
import functools
import io
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

import photon

Pixels = npt.NDArray[np.uint8]
Field = npt.NDArray[np.float32]

CONTRAST = 160.0
"""Least distance of a colour from what is behind it, as ``contrast`` measures it; black and white are 765 apart."""


def contrast(rgb: tuple[float, float, float], behind: Pixels) -> float:
    """How far a colour is from what is behind it, uint8 [height, width, 3]: from the nearest fifth of its pixels."""
    step = max(1, min(behind.shape[:2]) // 10)
    some = behind[::step, ::step].reshape(-1, 3).astype(np.float32)
    delta = some - np.array(rgb, np.float32)
    red = (some[:, 0] + np.float32(rgb[0])) / 512
    # The eye's weights for red, green and blue, after the well-known "redmean" formula.
    square = (2 + red) * delta[:, 0] ** 2 + 4 * delta[:, 1] ** 2 + (3 - red) * delta[:, 2] ** 2
    nearest = np.partition(square, len(square) // 5)[len(square) // 5]
    return math.sqrt(float(nearest))


@functools.cache
def photos() -> tuple[Image.Image, ...]:
    """The demo's eight photos in RGB, at most 640 pixels a side; assets/demo/LICENCES.md says whose they are."""
    # Imported here: a test of drawing alone needs no Parquet.
    import pyarrow.parquet as pq

    table = pq.read_table(Path(photon.__file__).parent / "assets" / "demo" / "photos.parquet", columns=["image"])
    return tuple(Image.open(io.BytesIO(row["bytes"])).convert("RGB") for row in table.column("image").to_pylist())


def _any_colour(rng: np.random.Generator) -> Field:
    """Dull ones more often than bright ones, from dark to light."""
    rgb = colorsys.hsv_to_rgb(rng.random(), 0.7 * rng.random() ** 2, rng.uniform(0.1, 1.0))
    return np.array(rgb, np.float32) * 255


def _near_colour(rgb: Field, spread: float, rng: np.random.Generator) -> Field:
    return np.clip(rgb + rng.uniform(-spread, spread, 3).astype(np.float32), 0, 255)


def _ramp(height: int, width: int, rng: np.random.Generator) -> Field:
    """[height, width], straight ahead in a random direction; neighbouring pixels are about 1 apart."""
    angle = rng.uniform(0, 2 * math.pi)
    across = np.arange(width, dtype=np.float32) * np.float32(math.cos(angle))
    down = np.arange(height, dtype=np.float32) * np.float32(math.sin(angle))
    return across[None, :] + down[:, None]


def _soft_noise(height: int, width: int, cells: int, rng: np.random.Generator) -> Field:
    """[height, width] in 0..1, smooth over about a ``cells``-th of the picture."""
    coarse = Image.fromarray(rng.integers(0, 256, (cells, cells), np.uint8))
    return np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32) / np.float32(255)


def _between(first: Field, second: Field, share: Field) -> Image.Image:
    """The colours on the way from ``first`` to ``second``; ``share`` is [height, width] in 0..1."""
    # A palette does in one pass of Pillow what takes NumPy a pass for each step of the sum.
    picture = Image.fromarray(np.clip(share * np.float32(255), 0, 255).astype(np.uint8))
    way = np.linspace(first, second, 256)
    picture.putpalette(way.astype(np.uint8).tobytes())
    return picture.convert("RGB")


def _gradient(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    ramp = _ramp(height, width, rng)
    share = (ramp - ramp.min()) / np.float32(max(1.0, ramp.max() - ramp.min()))
    if rng.random() < 0.3:  # from the middle outwards and back
        share = np.abs(2 * share - 1)
    first = _any_colour(rng)
    second = _any_colour(rng) if rng.random() < 0.3 else _near_colour(first, 70, rng)
    return _between(first, second, share)


def _noise(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    first = _any_colour(rng)
    share = _soft_noise(height, width, int(rng.integers(2, 24)), rng)
    share = share + rng.standard_normal((height, width), np.float32) * np.float32(rng.uniform(0.1, 0.5))
    return _between(first, _near_colour(first, 50, rng), share)


def _stripes(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    wave = np.sin(_ramp(height, width, rng) * np.float32(2 * math.pi / rng.uniform(5, 40)))
    if rng.random() < 0.5:  # hard edges
        wave = np.clip(wave * 4, -1, 1)
    first = _any_colour(rng)
    return _between(first, _near_colour(first, 40, rng), (wave + 1) / 2)


def _checks(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    cell = int(rng.integers(5, 30))
    rows, cols = np.arange(height) // cell, np.arange(width) // cell
    share = ((rows[:, None] + cols[None, :]) % 2).astype(np.float32)
    first = _any_colour(rng)
    return _between(first, _near_colour(first, 35, rng), share)


def _blobs(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    share = np.clip((_soft_noise(height, width, int(rng.integers(4, 14)), rng) - 0.5) * 8 + 0.5, 0, 1)
    first = _any_colour(rng)
    return _between(first, _near_colour(first, 40, rng), share)


def _photo(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    photo = photos()[rng.integers(len(photos()))]
    zoom = rng.uniform(0.35, 1.0) * min(photo.width / width, photo.height / height)
    left, top = rng.random() * (photo.width - zoom * width), rng.random() * (photo.height - zoom * height)
    box = (left, top, left + zoom * width, top + zoom * height)
    part = photo.resize((width, height), Image.Resampling.BILINEAR, box=box)
    if rng.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    # Muted mostly: at full contrast hardly any colour stands out everywhere.
    keep, rest = 1.0 if rng.random() < 0.2 else rng.uniform(0.25, 0.8), rng.uniform(20, 240)
    return part.point([round(keep * level + (1 - keep) * rest) for level in range(256)] * 3)


#: With their shares.
MAKERS = ((_gradient, 0.22), (_noise, 0.16), (_stripes, 0.12), (_checks, 0.08), (_blobs, 0.12), (_photo, 0.30))


def make_background(height: int, width: int, rng: np.random.Generator) -> Image.Image:
    """In RGB, of that size in pixels."""
    pick = rng.random()
    for maker, share in MAKERS:  # noqa: B007  the last one found is meant
        pick -= share
        if pick < 0:
            break
    return maker(height, width, rng)


#: Strokes that remind of letters and of none of our kinds, corners as fractions of their box.
LETTERS: tuple[tuple[tuple[tuple[float, float], ...], ...], ...] = (
    (((0, 1), (0.5, 0), (1, 1)), ((0.25, 0.6), (0.75, 0.6))),  # A
    (((1, 0), (0, 0), (0, 1), (1, 1)), ((0, 0.5), (0.8, 0.5))),  # E
    (((1, 0), (0, 0), (0, 1)), ((0, 0.5), (0.8, 0.5))),  # F
    (((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0.5), (1, 0.5))),  # H
    (((0, 0), (0, 1)), ((1, 0), (0, 0.5), (1, 1))),  # K
    (((0, 1), (0, 0), (0.5, 0.6), (1, 0), (1, 1)),),  # M
    (((0, 1), (0, 0), (1, 1), (1, 0)),),  # N
    (((0, 0), (0.25, 1), (0.5, 0.4), (0.75, 1), (1, 0)),),  # W
)


def add_distractors(picture: Image.Image, count: int, rng: np.random.Generator) -> None:
    """Draws ``count`` lines, squiggles, blobs and letters, greyish, so that none has a colour of ours."""
    pen = ImageDraw.Draw(picture)
    width, height = picture.size
    short = min(width, height)
    for _ in range(count):
        grey = rng.uniform(80, 175)
        red, green, blue = (int(level) for level in grey + rng.uniform(-14, 14, 3))
        colour = (red, green, blue)
        x, y = rng.random() * width, rng.random() * height
        thick = int(rng.integers(1, 3)) if short < 200 else int(rng.integers(1, 4))
        pick = rng.random()
        if pick < 0.3:
            angle, reach = rng.uniform(0, math.pi), short * rng.uniform(0.3, 0.9)
            pen.line([(x, y), (x + reach * math.cos(angle), y + reach * math.sin(angle))], colour, thick)
        elif pick < 0.6:
            steps = rng.normal(0, short * 0.06, (12, 2)).cumsum(axis=0) + np.array((x, y))
            pen.line([(float(a), float(b)) for a, b in steps], colour, thick, joint="curve")
        elif pick < 0.8:
            turn = np.linspace(0, 2 * math.pi, 24, endpoint=False)
            wobble = 1 + 0.35 * np.sin(2 * turn + rng.uniform(0, 6)) + 0.25 * np.sin(3 * turn + rng.uniform(0, 6))
            radius = short * rng.uniform(0.03, 0.1) * wobble
            edge = np.stack([x + radius * np.cos(turn), y + 0.7 * radius * np.sin(turn)], axis=1)
            pen.polygon([(float(a), float(b)) for a, b in edge], fill=colour)
        else:
            side = short * rng.uniform(0.08, 0.2)
            for stroke in LETTERS[rng.integers(len(LETTERS))]:
                pen.line([(x + 0.7 * side * a, y + side * b) for a, b in stroke], colour, thick)
