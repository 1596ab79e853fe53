"""What the model in the box learns from: a drawn picture, what is in it, and questions about it with their answers.

Boxes and points are (x, y) fractions of the picture's width and height, x to the right, y down, origin top-left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from photon.core import SkillName

SHAPES = ("circle", "square", "triangle", "star", "ring", "cross")
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "white", "black")
DIGITS = tuple(f"digit {n}" for n in range(10))
KINDS = SHAPES + DIGITS

Box: TypeAlias = tuple[float, float, float, float]
"""(x_min, y_min, x_max, y_max)."""


@dataclass(frozen=True, slots=True)
class Object:
    """One thing in a scene. ``kind`` is one of KINDS, ``colour`` one of COLOURS; ``box`` bounds the whole of it,
    parts that another object hides included."""

    kind: str
    colour: str
    box: Box

    @property
    def centre(self) -> tuple[float, float]:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


@dataclass(frozen=True, slots=True)
class Scene:
    """``pixels``: uint8 [height, width, 3]. ``objects`` in the order in which an answer lists them."""

    seed: int
    pixels: npt.NDArray[np.uint8]
    objects: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One request and its right answer: ``boxes`` for detect (in the order of the scene's objects), ``points`` for
    point (centres, likewise), ``text`` for query and caption. ``length`` is a caption's."""

    skill: SkillName
    prompt: str | None
    boxes: tuple[Box, ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    text: str = ""
    length: str = "normal"
    group: str = field(default="")
    """What figure of the evaluation it counts towards, for example ``shape``, ``digit``, ``any``, ``count``,
    ``colour``, ``yes``, ``caption``."""
