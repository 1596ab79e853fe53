"""A picture under way, which knows which of its pixels show which thing, so that none is hidden too far.

Where things go and what they are is decided in ``scenes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from training.draw import Paint, Stamp, paint_stamp
from training.scene import DIGITS, Box, Object, Scene

Tiling: TypeAlias = tuple[int, int]
"""Rows and columns."""

HIDDEN = 0.3
"""Largest part of a shape that others may cover."""
HIDDEN_DIGIT = 0.15


@dataclass(slots=True)
class Composition:
    """A picture under way. ``owner``: int16 [height, width], the place in ``things`` of what a pixel shows, or -1;
    ``areas`` and ``visible`` are pixels of each thing, all and not hidden; ``boxes`` in pixels."""

    pixels: npt.NDArray[np.uint8]
    tiling: Tiling
    owner: npt.NDArray[np.int16] = field(init=False)
    things: list[tuple[str, str]] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    areas: list[int] = field(default_factory=list)
    visible: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owner = np.full(self.pixels.shape[:2], -1, np.int16)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]

    def touched(self, box: Box) -> list[int]:
        """The things whose boxes are less than a pixel away, all in pixels."""
        x_min, y_min, x_max, y_max = box
        return [
            i
            for i, (left, top, right, bottom) in enumerate(self.boxes)
            if x_min < right + 1 and left < x_max + 1 and y_min < bottom + 1 and top < y_max + 1
        ]

    def hides_little(self, stamp: Stamp) -> bool:
        """Whether everything could still be seen well enough behind it."""
        touched = self.touched(stamp.box)
        if any(_shared(stamp.box, self.boxes[i]) > 0.5 for i in touched):
            return False
        lost = self._covered(stamp) if touched else []
        return all(
            self.visible[i] - lost[i] >= (1 - (HIDDEN_DIGIT if self.things[i][0] in DIGITS else HIDDEN)) * self.areas[i]
            for i in touched
        )

    def _covered(self, stamp: Stamp) -> list[int]:
        """Pixels of each thing that the stamp would take."""
        owners = self.owner[stamp.window][stamp.cover >= 0.5]
        counts: list[int] = np.bincount(owners + 1, minlength=len(self.things) + 1)[1:].tolist()
        return counts

    def add(self, kind: str, colour: str, stamp: Stamp, paint: Paint, rng: np.random.Generator) -> None:
        self.visible = [seen - lost for seen, lost in zip(self.visible, self._covered(stamp), strict=True)]
        solid = stamp.cover >= 0.5
        self.owner[stamp.window][solid] = len(self.things)
        self.things.append((kind, colour))
        self.boxes.append(stamp.box)
        self.areas.append(int(solid.sum()))
        self.visible.append(int(solid.sum()))
        paint_stamp(self.pixels, stamp, paint, rng)

    def scene(self, seed: int) -> Scene:
        height, width = self.size
        objects = [
            Object(kind, colour, (box[0] / width, box[1] / height, box[2] / width, box[3] / height))
            for (kind, colour), box in zip(self.things, self.boxes, strict=True)
        ]
        return Scene(seed, self.pixels, tuple(sorted(objects, key=reading_order)))


def reading_order(thing: Object) -> tuple[float, float]:
    """Left to right by the centre, those in one column downwards."""
    x, y = thing.centre
    return round(x, 6), y


def _shared(a: Box, b: Box) -> float:
    """What part of the smaller box the two share."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    smaller = min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]))
    return max(0.0, width) * max(0.0, height) / smaller
