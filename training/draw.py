"""Drawn things: glyphs of shapes and handwritten digits, and a canvas that knows which pixel shows which of them.

A glyph is drawn ``SAMPLES`` times finer than the picture along each axis; positions and sizes that are counted in
samples are fractions of a pixel. What a thing is and where it may stand is decided in ``scenes``.
"""

from __future__ import annotations

import colorsys
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from training.scene import SHAPES

SAMPLES = 4
"""Samples per pixel along one axis."""
TRAINING_DIGITS = 1500
"""Handwritten digits that training scenes draw from, out of 1 797; the others belong to held-out scenes."""

#: Hue in degrees, saturation and value, each a range. Apart far enough that shading does not carry one into another.
PALETTE = {
    "red": ((350.0, 363.0), (0.80, 0.95), (0.72, 0.92)),
    "orange": ((25.0, 32.0), (0.88, 1.00), (0.93, 1.00)),
    "yellow": ((51.0, 58.0), (0.80, 1.00), (0.92, 1.00)),
    "green": ((105.0, 150.0), (0.65, 0.90), (0.45, 0.70)),
    "blue": ((208.0, 230.0), (0.72, 0.95), (0.65, 0.95)),
    "purple": ((275.0, 292.0), (0.55, 0.80), (0.48, 0.72)),
    "white": ((0.0, 360.0), (0.00, 0.04), (0.94, 1.00)),
    "black": ((0.0, 360.0), (0.00, 0.30), (0.03, 0.11)),
}

INK = 0.52
"""How dark a point of a digit's enlarged scan is, of the darkest there, to be drawn."""
DIGIT_SIDE = 72
"""Pixels a side to which a scan is enlarged before it is bent."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """``mask``: uint8 [height, width] in samples, 0 beside the thing, 1 its outline, 2 its inside; the thing touches
    all four sides, so the mask's extent is its bounding box."""

    kind: str
    mask: npt.NDArray[np.uint8]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in samples."""
        return self.mask.shape[1], self.mask.shape[0]


@dataclass(frozen=True, slots=True)
class Paint:
    """``rgb`` in 0..255; ``slope`` is how much lighter one end is than the middle, along ``angle`` (radians);
    ``grain`` the deviation of the noise on it, in levels of 255."""

    rgb: tuple[float, float, float]
    slope: float = 0.0
    angle: float = 0.0
    grain: float = 0.0


def mix_paint(colour: str, rng: np.random.Generator) -> Paint:
    """A shade of one of COLOURS."""
    hue, saturation, value = (rng.uniform(low, high) for low, high in PALETTE[colour])
    red, green, blue = colorsys.hsv_to_rgb(hue % 360 / 360, saturation, value)
    return Paint(
        rgb=(red * 255, green * 255, blue * 255),
        slope=rng.uniform(0.0, 0.1),
        angle=rng.uniform(0.0, 2 * math.pi),
        grain=rng.uniform(0.0, 5.0),
    )


def _circle(radius: float) -> npt.NDArray[np.float64]:
    turn = np.linspace(0, 2 * math.pi, 48, endpoint=False)
    return radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)


def _rings(kind: str, rng: np.random.Generator) -> list[npt.NDArray[np.float64]]:
    """Corners [n, 2] around the origin, y down: the shape's edge, then that of its hole where it has one."""
    if kind == "circle":
        return [_circle(1.0)]
    if kind == "ring":
        return [_circle(1.0), _circle(rng.uniform(0.5, 0.66))]
    if kind == "square":
        return [np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])]
    if kind == "triangle":
        return [np.array([(0.0, -1.0), (0.9, 0.6), (-0.9, 0.6)])]
    if kind == "star":
        radius = np.where(np.arange(10) % 2 == 0, 1.0, rng.uniform(0.4, 0.5))
        turn = np.arange(10) * math.pi / 5 - math.pi / 2
        return [np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)]
    arm = rng.uniform(0.24, 0.36)
    corner = [(-arm, -1.0), (arm, -1.0), (arm, -arm), (1.0, -arm), (1.0, arm), (arm, arm)]
    return [np.array(corner + [(-x, -y) for x, y in corner])]


def _scale(width: float, height: float, shorter: float, longest: float) -> float:
    """What makes the shorter side ``shorter`` unless that makes the longer one more than ``longest``."""
    return min(shorter / min(width, height), longest / max(width, height))


def _shape_mask(
    kind: str, shorter: float, longest: float, outline: bool, rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    angle = rng.uniform(-1, 1) * math.radians(15)
    stretch = math.exp(rng.uniform(-0.12, 0.12))
    turn = np.array([(math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))])
    rings = [corners @ turn * (stretch, 1.0) for corners in _rings(kind, rng)]
    low, high = rings[0].min(axis=0), rings[0].max(axis=0)
    scale = _scale(high[0] - low[0], high[1] - low[1], shorter * SAMPLES - 1, longest * SAMPLES - 1)
    paths = [[(float(x), float(y)) for x, y in (corners - low) * scale] for corners in rings]
    width, height = (math.ceil(side) + 1 for side in (high - low) * scale)

    inside = Image.new("L", (width, height), 0)
    pen = ImageDraw.Draw(inside)
    for path, value in zip(paths, (2, 0), strict=False):
        pen.polygon(path, fill=value)
    mask = np.array(inside)
    if outline:
        edge = Image.new("L", (width, height), 0)
        pen = ImageDraw.Draw(edge)
        thick = round(2 * SAMPLES * min(rng.uniform(0.8, 1.6), 0.1 * shorter))
        for path in paths:
            pen.line([*path, path[0]], fill=1, width=thick)
        mask[(mask > 0) & (np.asarray(edge) > 0)] = 1
    return mask


@functools.cache
def digit_scans(held_out: bool) -> dict[str, npt.NDArray[np.uint8]]:
    """Real handwritten digits by kind, uint8 [count, 8, 8] of ink in 0..240, for held-out or for training scenes."""
    # Imported here: it takes a second, and only drawing needs it.
    from sklearn.datasets import load_digits  # type: ignore[import-not-found, import-untyped, unused-ignore]

    data = load_digits()
    part = slice(TRAINING_DIGITS, None) if held_out else slice(TRAINING_DIGITS)
    scans, values = data.images[part], data.target[part]
    return {f"digit {n}": (scans[values == n] * 15).astype(np.uint8) for n in range(10)}


@functools.lru_cache(maxsize=2000)
def _smooth_scan(kind: str, index: int, held_out: bool) -> Image.Image:
    """``DIGIT_SIDE`` pixels a side, with an empty margin to bend the digit into."""
    scan = Image.fromarray(np.pad(digit_scans(held_out)[kind][index], 2))
    return scan.resize((DIGIT_SIDE, DIGIT_SIDE), Image.Resampling.BICUBIC)


def _digit_mask(
    kind: str, shorter: float, longest: float, held_out: bool, rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    smooth = _smooth_scan(kind, int(rng.integers(len(digit_scans(held_out)[kind]))), held_out)
    angle, shear = rng.uniform(-1, 1) * math.radians(10), rng.uniform(-0.2, 0.2)
    stretch = math.exp(rng.uniform(-0.15, 0.15))
    cos, sin = math.cos(angle), math.sin(angle)
    # The inverse map that Pillow wants, about the middle of the scan.
    a, b = cos / stretch, sin + shear * cos
    d, e = -sin / stretch, cos - shear * sin
    middle = DIGIT_SIDE / 2
    matrix = (a, b, middle - middle * (a + b), d, e, middle - middle * (d + e))
    bent = smooth.transform(smooth.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)

    levels = np.asarray(bent)
    ink = INK * float(levels.max())
    box = _extent(levels > ink)
    left, top, right, bottom = box
    scale = _scale(right - left, bottom - top, shorter * SAMPLES, longest * SAMPLES)
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    large = np.asarray(bent.resize(size, Image.Resampling.BICUBIC, box=box))
    return (large > ink).view(np.uint8) * np.uint8(2)


def _extent(mask: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what is set, the last two exclusive."""
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(cols[0]), int(rows[0]), int(cols[-1]) + 1, int(rows[-1]) + 1


def make_glyph(
    kind: str,
    shorter: float,
    longest: float,
    rng: np.random.Generator,
    *,
    outline: bool = False,
    held_out: bool = False,
) -> Glyph:
    """One of KINDS, drawn so that its box's shorter side is ``shorter`` pixels, its longer one at most ``longest``.

    ``outline`` is for shapes; ``held_out`` picks the digits that training never sees.
    """
    if kind in SHAPES:
        mask = _shape_mask(kind, shorter, longest, outline, rng)
    else:
        mask = _digit_mask(kind, shorter, longest, held_out, rng)
    left, top, right, bottom = _extent(mask > 0)
    return Glyph(kind, mask[top:bottom, left:right])


@dataclass(frozen=True, slots=True)
class Stamp:
    """A glyph at a place: ``left`` and ``top`` in whole pixels; ``cover`` and ``edge`` float32 [height, width], how
    much of each pixel the thing and its outline take; ``box`` in pixels, with fractions."""

    left: int
    top: int
    cover: npt.NDArray[np.float32]
    edge: npt.NDArray[np.float32] | None
    box: tuple[float, float, float, float]

    @property
    def window(self) -> tuple[slice, slice]:
        height, width = self.cover.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


def place(glyph: Glyph, left: int, top: int) -> Stamp:
    """``left`` and ``top`` of the glyph's box in samples."""
    width, height = glyph.size
    dx, dy = left % SAMPLES, top % SAMPLES
    padded = np.zeros((-(-(dy + height) // SAMPLES) * SAMPLES, -(-(dx + width) // SAMPLES) * SAMPLES), np.uint8)
    padded[dy : dy + height, dx : dx + width] = glyph.mask
    edge = _coverage(padded == 1) if (glyph.mask == 1).any() else None
    box = (left / SAMPLES, top / SAMPLES, (left + width) / SAMPLES, (top + height) / SAMPLES)
    return Stamp(left // SAMPLES, top // SAMPLES, _coverage(padded > 0), edge, box)


def _coverage(samples: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
    picture = Image.fromarray(samples.view(np.uint8) * np.uint8(255))
    return np.asarray(picture.reduce(SAMPLES), np.float32) / np.float32(255)


def _span(count: int) -> npt.NDArray[np.float32]:
    """From -1 to 1."""
    return np.arange(count, dtype=np.float32) * np.float32(2 / max(1, count - 1)) - np.float32(1)


def paint_stamp(pixels: npt.NDArray[np.uint8], stamp: Stamp, paint: Paint, rng: np.random.Generator) -> None:
    """Draws into ``pixels``, uint8 [height, width, 3]."""
    height, width = stamp.cover.shape
    across = _span(width) * np.float32(paint.slope * math.cos(paint.angle))
    down = _span(height) * np.float32(paint.slope * math.sin(paint.angle))
    light = np.float32(1) + across[None, :] + down[:, None]
    if stamp.edge is not None:
        # The outline is a darker shade of the same colour, of black a lighter one: the colour's name stays true.
        target = np.float32(1.9 if max(paint.rgb) < 64 else 0.6)
        light = light + (target - light) * stamp.edge
    colour = light[..., None] * np.array(paint.rgb, np.float32)
    colour += rng.standard_normal((height, width, 1), np.float32) * np.float32(paint.grain)
    part = pixels[stamp.window]
    blend = part + (np.clip(colour, 0, 255) - part) * stamp.cover[..., None]
    part[...] = (blend + np.float32(0.5)).astype(np.uint8)
