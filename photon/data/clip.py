"""Boxes and points as cells of the result: clamped to the picture, told so, and none dropped.

The engine's own values may lie outside of [0, 1]. A box that lies outside altogether keeps its place in the list, as a
box without area at the edge.
"""

from __future__ import annotations

from typing import TypedDict

from photon.core import Box, Point


class ObjectCell(TypedDict):
    """``clipped``: whether a corner was outside of [0, 1]."""

    label: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float
    score: float
    score_exist: float
    score_loc: float
    clipped: bool


class PointCell(TypedDict):
    label: str
    x: float
    y: float
    score: float
    score_exist: float
    score_loc: float


def clip_box(box: Box) -> ObjectCell:
    x_min, y_min, x_max, y_max, label, score, score_exist, score_loc = box
    clipped = False
    # Most boxes lie inside; to look costs half of what clamping does.
    if not (0.0 < x_min < 1.0 and 0.0 < y_min < 1.0 and 0.0 < x_max < 1.0 and 0.0 < y_max < 1.0):
        raw = (x_min, y_min, x_max, y_max)
        x_min, y_min, x_max, y_max = inside = tuple(map(_clamp, raw))
        clipped = inside != raw
    # Written out, as below: a call with keywords takes three times as long, and there are many boxes.
    return {
        "label": label,
        "x_min": x_min,
        "y_min": y_min,
        "x_max": x_max,
        "y_max": y_max,
        "score": score,
        "score_exist": score_exist,
        "score_loc": score_loc,
        "clipped": clipped,
    }


def clip_point(point: Point) -> PointCell:
    x, y, label, score, score_exist, score_loc = point
    return {
        "label": label,
        "x": _clamp(x),
        "y": _clamp(y),
        "score": score,
        "score_exist": score_exist,
        "score_loc": score_loc,
    }


def _clamp(value: float) -> float:
    return value if 0.0 < value < 1.0 else 1.0 if value >= 1.0 else 0.0
