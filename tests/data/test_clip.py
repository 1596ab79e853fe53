"""Clamping: closed forms, and nothing dropped."""

from hypothesis import given
from hypothesis import strategies as st

from photon.core import Box, Point
from photon.data.clip import clip_box, clip_point

number = st.floats(-4, 4, width=32)


def test_inside_is_untouched():
    box = Box(0.0, 0.25, 1.0, 0.75, "car", 0.1, 0.2, 0.5)
    want = {"label": "car", "x_min": 0.0, "y_min": 0.25, "x_max": 1.0, "y_max": 0.75}
    assert clip_box(box) == {**want, "score": 0.1, "score_exist": 0.2, "score_loc": 0.5, "clipped": False}
    assert str(clip_box(Box(-0.0, 0, 1, 1, "car", 0, 0, 0))["x_min"]) == "0.0"


def test_outside_altogether_has_no_area_and_stays():
    assert clip_box(Box(1.5, -2.0, 1.75, 0.5, "car", 0.1, 0.2, 0.5)) == {
        "label": "car",
        "x_min": 1.0,
        "y_min": 0.0,
        "x_max": 1.0,
        "y_max": 0.5,
        "score": 0.1,
        "score_exist": 0.2,
        "score_loc": 0.5,
        "clipped": True,
    }


@given(number, number, number, number)
def test_clamped_and_told_so(a, b, c, d):
    cell = clip_box(Box(a, b, c, d, "car", 0.1, 0.2, 0.5))
    corners = [cell[name] for name in ("x_min", "y_min", "x_max", "y_max")]
    assert corners == [min(max(v, 0.0), 1.0) for v in (a, b, c, d)]
    assert cell["clipped"] == (not all(0 <= v <= 1 for v in (a, b, c, d)))
    point = clip_point(Point(a, b, "door", 0.1, 0.2, 0.5))
    assert [point["x"], point["y"]] == corners[:2]
    assert "clipped" not in point
