"""Frames and units: every orientation against Pillow's own pixels, there and back, and each unit in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageOps

from photon.export.frame import View, cxcywh, percent, view_of, xywh
from tests.export.runs import INSIDE, ORIENTATIONS, RED, SIZE, encoded, red_of

BOX = (0.125, 0.25, 0.5, 1.0)


def view(frame: str, recorded: str, orientation: int) -> View:
    swapped = recorded == "stored" and orientation >= 5
    width, height = SIZE[::-1] if swapped else SIZE
    cell = {"width": width, "height": height, "frame": recorded, "exif_orientation": orientation}
    return view_of(cell, frame)  # type: ignore[arg-type]


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_box_lies_where_the_stored_pixels_are(orientation: int, tmp_path) -> None:
    file = tmp_path / "photo.png"
    file.write_bytes(encoded(orientation=orientation, form="PNG"))
    with Image.open(file) as stored:
        pixels = np.asarray(stored)
        assert red_of(ImageOps.exif_transpose(stored)) == RED, "the picture is a right one"
    seen = view("stored", "oriented", orientation)
    assert (seen.height, seen.width) == pixels.shape[:2]
    assert seen.xyxy_px(seen.corners(INSIDE)) == red_of(pixels)
    back = view("oriented", "stored", orientation)
    assert (back.width, back.height) == SIZE
    assert back.xyxy_px(back.corners(seen.corners(INSIDE))) == RED


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("recorded", ["oriented", "stored"])
@pytest.mark.parametrize("frame", ["oriented", "stored"])
def test_there_and_back_is_the_same_float(frame: str, recorded: str, orientation: int) -> None:
    corners = tuple(float(np.float32(value)) for value in (0.1, 0.2, 0.7, 0.9))
    seen = view(frame, recorded, orientation)
    assert seen.recorded_corners(seen.corners(corners)) == corners
    assert seen.corners(corners) == corners or frame != recorded
    x, y = seen.point(corners[0], corners[1])
    turned = seen.corners((corners[0], corners[1], corners[0], corners[1]))
    assert (x, y) == turned[:2] == turned[2:], "points turn as corners do"


def test_no_frame_is_the_recorded_one() -> None:
    seen = view_of({"width": 30, "height": 40, "frame": "stored", "exif_orientation": 6}, None)
    assert (seen.width, seen.height, seen.frame, seen.corners(BOX)) == (30, 40, "stored", BOX)


def test_units() -> None:
    seen = View(80, 40, "oriented", "oriented", 1)
    assert seen.xyxy_px(BOX) == (10, 10, 40, 40)
    assert seen.xywh_px(BOX) == (10, 10, 30, 30)
    assert seen.xy_px(0.5, 0.25) == (40, 10)
    assert xywh(BOX) == (0.125, 0.25, 0.375, 0.75)
    assert cxcywh(BOX) == (0.3125, 0.625, 0.375, 0.75)
    assert percent(BOX) == (12.5, 25, 50, 100)


@pytest.mark.parametrize(
    ("pixels", "counted"),
    [
        ((0, 0, 100, 50), (1, 1, 100, 50)),  # all of the picture
        ((10, 20, 11, 21), (11, 21, 11, 21)),  # one pixel
        ((10.4, 20.6, 30.4, 40.6), (11, 22, 30, 41)),
        ((10.5, 11.5, 12.5, 13.5), (11, 13, 12, 14)),  # halves to the even border
        ((10.1, 20.1, 10.3, 20.3), (11, 21, 11, 21)),  # less than a pixel keeps one
        ((99.7, 49.7, 100, 50), (100, 50, 100, 50)),  # inside of the picture
    ],
)
def test_voc_counts_pixels_from_one(pixels: tuple[float, ...], counted: tuple[int, ...]) -> None:
    x_min, y_min, x_max, y_max = pixels
    seen = View(100, 50, "oriented", "oriented", 1)
    assert seen.voc_px((x_min / 100, y_min / 50, x_max / 100, y_max / 50)) == counted
