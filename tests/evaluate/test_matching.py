"""Pairing answers with truth: greedy for boxes, one-to-one for points."""

from __future__ import annotations

import itertools
import random

import pytest

from photon.evaluate.matching import match_boxes, match_points
from photon.skills.repetition import iou

UNIT = (0.0, 0.0, 1.0, 1.0)


def test_iou() -> None:
    assert iou(UNIT, (0.5, 0.0, 1.5, 1.0)) == pytest.approx(1 / 3)
    assert iou(UNIT, UNIT) == 1
    assert iou(UNIT, (1.0, 0.0, 2.0, 1.0)) == 0
    assert iou((0.2, 0.2, 0.2, 0.2), (0.2, 0.2, 0.2, 0.2)) == 0


def test_a_truth_is_taken_once_and_by_the_better_score() -> None:
    assert match_boxes([UNIT, UNIT], [UNIT], 0.5) == [True, False]
    assert match_boxes([UNIT], [], 0.5) == [False]
    assert match_boxes([], [UNIT], 0.5) == []


def test_the_first_takes_the_truth_that_it_fits_best() -> None:
    """A fits b (0.8) better than a (0.6), and so leaves a to the second, which b would not have fitted."""
    a, b = (0.0, 0.0, 0.6, 1.0), (0.0, 0.0, 0.8, 1.0)
    assert match_boxes([UNIT, (0.0, 0.0, 0.35, 1.0)], [a, b], 0.5) == [True, True]


def test_the_threshold_counts_as_enough() -> None:
    half = (0.0, 0.0, 0.5, 1.0)
    assert match_boxes([half], [UNIT], 0.5) == [True]
    assert match_boxes([half], [UNIT], 0.51) == [False]
    assert match_boxes([UNIT], [UNIT], 1.0) == [True]


def test_points_hit_one_to_one() -> None:
    assert match_points([(0.5, 0.5), (0.4, 0.4)], [UNIT]) == [True, False]
    assert match_points([(1.0, 0.0), (1.01, 0.0)], [UNIT]) == [True, False], "the edge belongs to the box"


def test_overlapping_boxes_cost_no_hit() -> None:
    """The first lies in both, the second in the left one alone: the first makes room."""
    left, right = (0.0, 0.0, 0.6, 1.0), (0.4, 0.0, 1.0, 1.0)
    for boxes in ([left, right], [right, left]):
        assert match_points([(0.5, 0.5), (0.1, 0.5)], boxes) == [True, True]
        assert match_points([(0.5, 0.5), (0.5, 0.4), (0.1, 0.5)], boxes) == [True, True, False]


def test_a_long_chain_of_points_makes_room() -> None:
    """Each point but the last lies in its box and the next; the last lies in the first box alone, so all move up."""
    boxes = [(n, 0.0, n + 1.5, 1.0) for n in range(1100)]
    points = [*((n + 1.25, 0.5) for n in range(1099)), (0.5, 0.5)]
    assert match_points([*points, (0.5, 0.5)], boxes) == [True] * 1100 + [False]


def test_more_points_than_boxes_in_a_heap() -> None:
    assert match_points([(0.5, 0.5)] * 800, [UNIT] * 400) == [True] * 400 + [False] * 400


def test_points_agree_with_trying_everything() -> None:
    dice = random.Random(5)
    for _ in range(200):
        boxes = [_box(dice) for _ in range(dice.randrange(4))]
        points = [(dice.random(), dice.random()) for _ in range(dice.randrange(5))]
        hits = match_points(points, boxes)
        assert sum(hits) == _most(points, boxes)
        for n in range(len(points)):
            assert match_points(points[:n], boxes) == hits[:n], "later points change no earlier hit"


def _box(dice: random.Random) -> tuple[float, float, float, float]:
    x, y = dice.uniform(0, 0.5), dice.uniform(0, 0.5)
    return (x, y, x + dice.uniform(0.2, 0.5), y + dice.uniform(0.2, 0.5))


def _most(points: list[tuple[float, float]], boxes: list[tuple[float, float, float, float]]) -> int:
    """The most hits of any assignment of boxes to points."""
    slots = [*range(len(boxes)), *[None] * len(points)]
    return max(
        sum(n is not None and match_points([p], [boxes[n]])[0] for p, n in zip(points, order, strict=True))
        for order in set(itertools.permutations(slots, len(points)))
    )
