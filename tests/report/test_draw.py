from __future__ import annotations

import random

import numpy as np
import pytest
from PIL import Image

from photon.report.answers import Mark
from photon.report.draw import COLOURS, Palette, draw_marks, ink_on, labels_of
from photon.report.tags import Tag, place_tags

GROUND = (90, 90, 90)


def drawn(marks: list[Mark], size: tuple[int, int] = (200, 120)) -> np.ndarray:
    return np.asarray(draw_marks(Image.new("RGB", size, GROUND), marks, Palette()))


def luminance(colour: tuple[int, int, int]) -> float:
    """WCAG's relative luminance, from its definition."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_box_is_drawn_on_the_pixels_at_its_border() -> None:
    """0.25 to 0.5 of 200 columns are the columns 50 to 99; 0.5 to 0.75 of 120 lines the lines 60 to 89."""
    made = drawn([Mark("cat", 0.5, 0.25, 0.5, (0.5, 0.75))])
    stroke = (made == COLOURS[0]).all(axis=-1)
    assert np.flatnonzero(stroke[75]).tolist() == [49, 50, 99, 100]
    # Below, since the tag stands on the box.
    assert np.flatnonzero(stroke[70:, 90]).tolist() == [89 - 70, 90 - 70]
    assert stroke[61:89, 49].all()
    assert (made[65:85, 55:95] == GROUND).all()
    assert not (made[75, [48, 51, 98, 101]] == GROUND).all(axis=-1).any()  # the edge of the stroke
    assert (made[75, [47, 52, 97, 102]] == GROUND).all()


def test_a_box_as_large_as_the_picture_is_seen() -> None:
    made = drawn([Mark("cat", 0.5, 0.0, 0.0, (1.0, 1.0))])
    stroke = (made == COLOURS[0]).all(axis=-1)
    assert stroke[-2:].all()
    assert stroke[20:, :2].all()
    assert stroke[20:, -2:].all()


def test_a_point_is_a_ring_with_a_centre() -> None:
    made = drawn([Mark("cat", 0.5, 0.25, 0.5)])
    colour = (made == COLOURS[0]).all(axis=-1)
    assert colour[60, 50]
    assert (np.flatnonzero(colour[60, :58]) - 50).tolist() == [-7, -6, -1, 0, 1, 6, 7]
    ring = [(60 + dy, 50 + dx) for dx, dy in ((0, 7), (0, -7), (-7, 0), (5, 5), (-5, 5), (-5, -5))]
    assert all(colour[place] for place in ring)
    assert (made[60 - 4, 50] == GROUND).all()
    assert (made[60 - 12, 50] == GROUND).all()


def test_small_boxes_lie_on_large_ones_and_rings_on_both() -> None:
    small, large, dot = (
        Mark("s", 0.5, 0.4, 0.4, (0.6, 0.8)),
        Mark("l", 0.5, 0.4, 0.2, (1.0, 1.0)),
        Mark("p", 0.5, 0.4, 0.6),
    )
    for marks in ([small, large, dot], [dot, large, small]):
        palette = Palette(["s", "l", "p"])
        made = np.asarray(draw_marks(Image.new("RGB", (200, 120), GROUND), marks, palette))
        assert tuple(made[85, 80]) == palette.colour("s")
        assert tuple(made[110, 80]) == palette.colour("l")
        assert tuple(made[72, 80]) == palette.colour("p")


def test_the_picture_itself_is_left_alone() -> None:
    picture = Image.new("RGB", (50, 40), GROUND)
    assert draw_marks(picture, [Mark("a", 1.0, 0.1, 0.1, (0.9, 0.9))], Palette()) is not picture
    assert picture.getcolors() == [(50 * 40, GROUND)]
    assert (np.asarray(draw_marks(picture, [], Palette())) == GROUND).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (352, 1), (1, 304), (12, 12), (40, 16)])
def test_tiny_pictures(size: tuple[int, int]) -> None:
    marks = [
        Mark("a long label for so small a picture", 0.5, 0.0, 0.0, (1.0, 1.0)),
        Mark("at the far corner, without area", 0.5, 1.0, 1.0, (1.0, 1.0)),
        Mark("there too", 0.5, 1.0, 1.0),
    ]
    made = drawn(marks, size)
    assert made.shape == (size[1], size[0], 3)
    # The last column and line are inside of both.
    assert (made[-1, -1] != GROUND).any()


def test_strokes_and_tags_grow_with_the_picture() -> None:
    mark = Mark("cat", 0.5, 0.25, 0.25, (0.75, 0.75))
    one, two = ((drawn([mark], (side, side)) == COLOURS[0]).all(axis=-1) for side in (400, 800))
    assert (np.count_nonzero(one[250]), np.count_nonzero(two[500])) == (4, 8)


def test_one_colour_a_label() -> None:
    palette = Palette(["dog"])
    labels = [f"label {n}" for n in range(23)]
    colours = [palette.colour(label) for label in labels]
    assert len({palette.colour("dog"), *colours}) == 24
    assert [palette.colour(label) for label in reversed(labels)] == colours[::-1]
    assert palette.colour("dog") == COLOURS[0]
    assert colours[:7] == [*COLOURS[1:]]
    assert palette.labels == ["dog", *labels]
    assert palette.colour("one more") == COLOURS[0]
    assert labels_of([Mark("b", 1, 0, 0), Mark("a", 1, 0, 0), Mark("b", 1, 0, 0)]) == ["b", "a"]


def test_tags_can_be_read() -> None:
    """WCAG asks 4.5 of small text."""
    palette = Palette()
    for n in range(24):
        colour = palette.colour(str(n))
        light, dark = sorted((luminance(colour), luminance(ink_on(colour))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


@pytest.mark.parametrize(
    "corners", [(0, 0, 0.1, 0.1), (0.9, 0, 1, 0.1), (0, 0.9, 0.1, 1), (0.9, 0.9, 1, 1), (0, 0, 1, 1)]
)
def test_tags_at_the_borders_are_whole(corners: tuple[float, float, float, float]) -> None:
    """A tag has the same pixels wherever it stands: the dark ones are its letters."""
    x, y, *far = corners

    def letters(mark: Mark) -> int:
        made = draw_marks(Image.new("RGB", (300, 200), (255, 255, 255)), [mark], Palette(["cat"]))
        return int((np.asarray(made).max(axis=-1) < 90).sum())

    middle = letters(Mark("cat", 0.5, 0.4, 0.4, (0.6, 0.6)))
    assert middle > 30
    assert letters(Mark("cat", 0.5, x, y, (far[0], far[1]))) == middle


def test_no_tag_leaves_the_picture_or_lies_on_another() -> None:
    dice = random.Random(5)
    for _ in range(30):
        size = (dice.randrange(20, 352), dice.randrange(10, 304))
        tags = []
        for n in range(dice.randrange(60)):
            left, top = dice.randrange(-3, size[0]), dice.randrange(-3, size[1])
            around = (left, top, left + dice.randrange(80), top + dice.randrange(80))
            texts = {f"label {n}": (dice.randrange(30, 90), 16), "0.50": (30, 16)}
            tags.append(Tag(f"label {n}", around, dice.random() < 0.7, texts))
        covered = np.zeros((size[1], size[0]), int)
        for tag, text, (left, top, right, bottom) in place_tags(tags, size):
            assert (right - left + 1, bottom - top + 1) == tag.texts[text]
            assert 0 <= left <= right < size[0]
            assert 0 <= top <= bottom < size[1]
            covered[top : bottom + 1, left : right + 1] += 1
        assert covered.max(initial=0) <= 1


def test_a_tag_stands_on_its_box_and_is_shortened_where_there_is_no_room() -> None:
    texts = {"label": (60, 16), "0.50": (30, 16)}
    tag = Tag("label", (50, 50, 120, 90), True, texts)
    ((_, text, place),) = place_tags([tag], (300, 200))
    assert (text, place) == ("label", (50, 34, 109, 49))
    ((_, text, place),) = place_tags([tag], (59, 16))
    assert (text, place) == ("0.50", (29, 0, 58, 15))
    assert list(place_tags([tag], (29, 200))) == []
    # The first one has the choice; of a crowd in one place only so many are named.
    crowd = [Tag(str(n), (50, 50, 60, 60), True, texts) for n in range(40)]
    named = [tag.label for tag, _, _ in place_tags(crowd, (300, 200))]
    assert named[0] == "0"
    assert len(named) < 20
