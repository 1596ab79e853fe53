"""What many answers cost: memory by the answer, with figures that a plain computation confirms."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from photon.evaluate import average_precision as module
from photon.evaluate.average_precision import average_precision
from photon.evaluate.scores import ranking


def peak_of(work: Callable[[], Any]) -> int:
    """Bytes at most beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_curve_of_many_scores() -> None:
    dice = np.random.default_rng(0)
    scores = dice.random(50_000)
    right = (dice.random(50_000) < scores).astype(np.uint8)
    assert peak_of(lambda: ranking(scores, right, 40_000)) < 120 * 50_000
    made = ranking(scores, right, 40_000)
    assert len(made.curve) <= 101
    order = np.argsort(-scores)
    f1 = 2 * np.cumsum(right[order]) / (np.arange(1, 50_001) + 40_000)
    assert made.best is not None
    assert (made.best.score, made.best.f1) == (scores[order][f1.argmax()], f1.max())
    at = made.curve[40]
    passing = scores >= at.score
    assert at.precision == right[passing].sum() / passing.sum()
    assert at.recall == right[passing].sum() / 40_000
    assert made.curve[-1].score == scores.min()


def some_boxes(rows: int, each: int) -> tuple[array[float], array[float]]:
    """Shaken boxes; in every third row nothing is found, in every fifth nothing is there."""
    dice = np.random.default_rng(1)
    true, found = array("d"), array("d")
    for row in range(1, rows + 1):
        for x, y, shake, score in dice.random((each, 4)):
            if row % 5:
                true.extend((row, x, y, x + 0.3, y + 0.3))
            if row % 3:
                found.extend((row, x + shake / 8, y, x + 0.3, y + 0.3, score))
    return true, found


def test_average_precision_holds_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 100, raising=False)
    average_precision(*some_boxes(10, 1))  # imports
    true, found = some_boxes(800, 1)
    assert peak_of(lambda: average_precision(true, found)) < 1_500_000


def test_a_few_rows_at_a_time_are_as_good_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    true, found = some_boxes(120, 4)
    monkeypatch.setattr(module, "_ROWS", 1000)
    whole = average_precision(true, found)
    assert whole is not None
    assert 0.05 < whole.ap < whole.ap50 < 1
    for rows in (1, 7, 119):
        monkeypatch.setattr(module, "_ROWS", rows)
        assert average_precision(true, found) == whole
