"""Marks drawn on a picture: boxes and rings in the colour of their label, each with a tag that names it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from PIL import Image, ImageDraw

from photon.report.answers import Mark
from photon.report.lettering import cut, font_for
from photon.report.tags import Rect, Tag, place_tags

Colour: TypeAlias = tuple[int, int, int]

#: Okabe and Ito's, which people who do not see all colours can tell apart; black left out.
COLOURS: tuple[Colour, ...] = (
    (0xE6, 0x9F, 0x00), (0x56, 0xB4, 0xE9), (0x00, 0x9E, 0x73), (0xF0, 0xE4, 0x42),
    (0xCC, 0x79, 0xA7), (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0xD9, 0xD9, 0xD9),
)  # fmt: skip
_SHADES = ((0, 0.0), (255, 0.55), (0, 0.45))  # what is mixed in, black or white, and its share
_EDGE = 150  # opacity of the black or white around every stroke, by which it stands out from whatever is below
_CAPITALS = 0.72  # their height, of the font's size
_FINE = 4  # how many times larger curves are drawn before they are scaled down, which smoothes them


class Palette:
    """A colour for each label, in the order in which labels are met. After ``COLOURS`` come lighter and darker ones,
    then all of them again: it is the tags that tell labels apart."""

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        for label in labels:
            self.colour(label)

    def colour(self, label: str) -> Colour:
        turn, number = divmod(self._numbers.setdefault(label, len(self._numbers)), len(COLOURS))
        ground, share = _SHADES[turn % len(_SHADES)]
        red, green, blue = (round(ground * share + value * (1 - share)) for value in COLOURS[number])
        return red, green, blue

    @property
    def labels(self) -> list[str]:
        """Those met so far."""
        return [*self._numbers]


def ink_on(colour: Colour) -> Colour:
    """Black or white, whichever is easier to read on ``colour``."""
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour))
    # Where both have the same contrast by WCAG's formula: (L + 0.05) ** 2 = 1.05 * 0.05.
    return (0, 0, 0) if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else (255, 255, 255)


def draw_marks(picture: Image.Image, marks: Sequence[Mark], palette: Palette) -> Image.Image:
    """A copy of ``picture`` (RGB, in the size that it is shown in) with ``marks`` on it.

    A box's stroke covers the pixels at its border. Strokes and tags grow with the picture from 400 pixels on; a tag
    that finds no room is shortened to its score, and left out where even that would hide others or what they are about.
    """
    canvas = picture.copy()
    scale = max(1.0, max(canvas.size) / 400)
    # Large ones first: small ones stay on top.
    for mark in sorted(marks, key=lambda mark: -_area(mark)):
        if mark.far is not None:
            _draw_box(canvas, box_of(mark, canvas.size), palette.colour(mark.label), scale)
    for mark in marks:
        if mark.far is None:
            _draw_ring(canvas, _pixel(mark, canvas.size), palette.colour(mark.label), scale)
    _draw_tags(canvas, marks, palette, scale)
    return canvas


def box_of(mark: Mark, size: tuple[int, int]) -> Rect:
    """The pixels that a box covers, first and last column and row included; at least one."""
    assert mark.far is not None
    (width, height), (x_max, y_max) = size, mark.far
    left = min(round(mark.x * width), width - 1)
    top = min(round(mark.y * height), height - 1)
    return left, top, max(left, round(x_max * width) - 1), max(top, round(y_max * height) - 1)


def _pixel(mark: Mark, size: tuple[int, int]) -> tuple[int, int]:
    """The pixel that a point lies in."""
    return min(int(mark.x * size[0]), size[0] - 1), min(int(mark.y * size[1]), size[1] - 1)


def _area(mark: Mark) -> float:
    return (mark.far[0] - mark.x) * (mark.far[1] - mark.y) if mark.far else 0.0


def _draw_box(canvas: Image.Image, box: Rect, colour: Colour, scale: float) -> None:
    left, top, right, bottom = box
    pen, (width, height) = ImageDraw.Draw(canvas, "RGBA"), canvas.size
    stroke = round(2 * scale)
    for edge, paint in ((1, (*ink_on(colour), _EDGE)), (0, (*colour, 255))):
        reach = stroke - 1 + edge  # outside of the box; one pixel of the stroke lies inside. All of it in the picture
        first = max(left - reach, -edge), max(top - reach, -edge)
        last = min(right + reach, width - 1 + edge), min(bottom + reach, height - 1 + edge)
        pen.rectangle((*first, *last), outline=paint, width=stroke + 2 * edge)


def _draw_ring(canvas: Image.Image, at: tuple[int, int], colour: Colour, scale: float) -> None:
    reach = _ring_reach(scale)
    for mask, paint in zip(_ring_masks(scale), (ink_on(colour), colour), strict=True):
        canvas.paste(paint, (at[0] - reach, at[1] - reach), mask)


def _ring_reach(scale: float) -> int:
    """Pixels from a ring's centre to where it ends, the edge included."""
    return round(9.5 * scale)


@functools.lru_cache(maxsize=8)
def _ring_masks(scale: float) -> tuple[Image.Image, Image.Image]:
    """The edge, and the ring with its centre, as grey masks of 2 x reach + 1 pixels."""
    side = 2 * _ring_reach(scale) + 1
    masks = []
    for grown, full in ((1.0, _EDGE), (0.0, 255)):
        mask = Image.new("L", (side * _FINE, side * _FINE), 0)
        pen, middle = ImageDraw.Draw(mask), side * _FINE / 2
        for radius, value in ((8.0 + grown, full), (5.3 - grown, 0), (1.8 + grown, full)):
            reach = radius * scale * _FINE
            pen.ellipse((middle - reach, middle - reach, middle + reach - 1, middle + reach - 1), fill=value)
        masks.append(mask.resize((side, side), Image.Resampling.BOX))
    return masks[0], masks[1]


def _draw_tags(canvas: Image.Image, marks: Sequence[Mark], palette: Palette, scale: float) -> None:
    size = round(12 * scale)
    pen = ImageDraw.Draw(canvas)
    tags = [_tag(mark, canvas.size, size, scale) for mark in sorted(marks, key=lambda mark: -mark.score)]
    for tag, text, (left, top, right, bottom) in place_tags(tags, canvas.size):
        colour = palette.colour(tag.label)
        mask = _rounded(right - left + 1, bottom - top + 1, round(3 * scale))
        canvas.paste(colour, (left, top), mask)
        # On whole pixels, where letters are sharpest, and capitals in the middle.
        base = top + (bottom - top + 1 + round(_CAPITALS * size)) // 2
        pen.text((left + _padding(scale), base), text, fill=ink_on(colour), font=font_for(text, size), anchor="ls")


def _around(mark: Mark, size: tuple[int, int], scale: float) -> Rect:
    """What a mark takes: a box its pixels and stroke, a point its ring."""
    if mark.far is not None:
        left, top, right, bottom = box_of(mark, size)
        reach = round(2 * scale)
    else:
        (left, top), reach = _pixel(mark, size), _ring_reach(scale)
        right, bottom = left, top
    return left - reach, top - reach, right + reach, bottom + reach


def _tag(mark: Mark, picture: tuple[int, int], size: int, scale: float) -> Tag:
    score = f"{mark.score:.2f}"
    room = min(0.6 * picture[0], 200 * scale)
    label = cut(mark.label, size, room, keep="start")
    texts = (f"{label} {score}".strip(), score)
    height = round(size * 1.35)
    sizes = [(round(font_for(text, size).getlength(text)) + 2 * _padding(scale), height) for text in texts]
    return Tag(mark.label, _around(mark, picture, scale), mark.far is not None, dict(zip(texts, sizes, strict=True)))


def _padding(scale: float) -> int:
    """Pixels before and after a tag's text."""
    return round(4 * scale)


@functools.lru_cache(maxsize=512)
def _rounded(width: int, height: int, radius: int) -> Image.Image:
    mask = Image.new("L", (width * _FINE, height * _FINE), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width * _FINE - 1, height * _FINE - 1), radius * _FINE, fill=255)
    return mask.resize((width, height), Image.Resampling.BOX)


def labels_of(marks: Iterable[Mark]) -> list[str]:
    """The labels of ``marks``, each once, in order."""
    return list(dict.fromkeys(mark.label for mark in marks))
