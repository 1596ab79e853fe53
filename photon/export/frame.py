"""From a row's normalised coordinates to the frame and the unit that a tool wants: the one place that converts.

A frame is a picture before ("stored") or after ("oriented") its EXIF orientation is applied. Everything is worked out
in float64 from the float32 that the row holds, so turning there and back gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from photon.images.orientation import swaps_sides

Frame: TypeAlias = Literal["oriented", "stored"]
FRAMES: tuple[Frame, ...] = ("oriented", "stored")
#: x_min, y_min, x_max, y_max
Corners: TypeAlias = tuple[float, float, float, float]
_Turn: TypeAlias = Callable[[float, float], tuple[float, float]]

#: Where a point of the stored picture, in [0, 1], lies in the oriented one, by EXIF orientation.
_UPRIGHT: dict[int, _Turn] = {
    1: lambda x, y: (x, y),
    2: lambda x, y: (1 - x, y),
    3: lambda x, y: (1 - x, 1 - y),
    4: lambda x, y: (x, 1 - y),
    5: lambda x, y: (y, x),
    6: lambda x, y: (1 - y, x),
    7: lambda x, y: (1 - y, 1 - x),
    8: lambda x, y: (y, 1 - x),
}
#: And back; only the quarter turns are not their own inverse.
_STORED: dict[int, _Turn] = {**_UPRIGHT, 6: _UPRIGHT[8], 8: _UPRIGHT[6]}


@dataclass(frozen=True, slots=True)
class View:
    """A row's picture in ``frame``, ``width`` by ``height`` pixels. ``recorded`` is the frame of the row's answers."""

    width: int
    height: int
    frame: Frame
    recorded: Frame
    orientation: int

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A recorded point as it lies in this view."""
        return _between(self.recorded, self.frame, self.orientation)(x, y)

    def corners(self, corners: Corners) -> Corners:
        """A recorded box as it lies in this view."""
        return _turned(_between(self.recorded, self.frame, self.orientation), corners)

    def recorded_corners(self, corners: Corners) -> Corners:
        """A box of this view as the row would record it."""
        return _turned(_between(self.frame, self.recorded, self.orientation), corners)

    def xy_px(self, x: float, y: float) -> tuple[float, float]:
        return x * self.width, y * self.height

    def xyxy_px(self, corners: Corners) -> Corners:
        x_min, y_min, x_max, y_max = corners
        return x_min * self.width, y_min * self.height, x_max * self.width, y_max * self.height

    def xywh_px(self, corners: Corners) -> Corners:
        """COCO's: the corner at the top left, width and height."""
        return xywh(self.xyxy_px(corners))

    def voc_px(self, corners: Corners) -> tuple[int, int, int, int]:
        """VOC's: the first and the last pixel, counted from 1. Edges go to the nearest border between two pixels,
        halves to the even one; a box keeps one pixel at least."""
        x_min, y_min, x_max, y_max = map(round, self.xyxy_px(corners))
        left, top = min(x_min + 1, self.width), min(y_min + 1, self.height)
        return left, top, max(x_max, left), max(y_max, top)


def view_of(image: Mapping[str, Any], frame: Frame | None) -> View:
    """``image`` is the cell of that name; ``frame`` None: the one that it records."""
    recorded = cast(Frame, image["frame"])
    orientation = image["exif_orientation"]
    width, height = image["width"], image["height"]
    if frame not in (None, recorded) and swaps_sides(orientation):
        width, height = height, width
    return View(width, height, frame or recorded, recorded, orientation)


def xywh(corners: Corners) -> Corners:
    """FiftyOne's in [0, 1]: the corner at the top left, width and height."""
    x_min, y_min, x_max, y_max = corners
    return x_min, y_min, x_max - x_min, y_max - y_min


def cxcywh(corners: Corners) -> Corners:
    """YOLO's: the middle, width and height."""
    x_min, y_min, x_max, y_max = corners
    return (x_min + x_max) / 2, (y_min + y_max) / 2, x_max - x_min, y_max - y_min


def percent(values: Corners) -> Corners:
    """Label Studio's: hundredths of a side."""
    a, b, c, d = values
    return 100 * a, 100 * b, 100 * c, 100 * d


def has_area(corners: Corners) -> bool:
    x_min, y_min, x_max, y_max = corners
    return x_max > x_min and y_max > y_min


def _between(source: Frame, target: Frame, orientation: int) -> _Turn:
    if source == target:
        return _UPRIGHT[1]
    return (_UPRIGHT if target == "oriented" else _STORED)[orientation]


def _turned(turn: _Turn, corners: Corners) -> Corners:
    (ax, ay), (bx, by) = turn(*corners[:2]), turn(*corners[2:])
    return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
