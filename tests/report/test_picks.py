"""Which rows a report shows, against a choice among all rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import pytest

from photon.report import picks as module
from photon.report.columns import answers_of
from photon.report.picks import Gallery, Picks
from tests.report.made import TASKS, batches, found, made_rows, mean_score

Rows = Sequence[dict[str, Any]]


def galleries(rows: Rows, size: int = 50, most: int = 10, seed: int = 0) -> dict[str, Gallery]:
    picks = Picks(most, seed)
    for batch in batches(rows, size):
        picks.offer(batch, [answers_of(batch, task) for task in TASKS])
    return {gallery.slug: gallery for gallery in picks.galleries()}


def scores(rows: Rows, gallery: Gallery) -> list[float]:
    return [mean_score(rows[position]) for position in gallery.positions]


def test_galleries_by_score() -> None:
    rows = made_rows(1000)
    chosen = galleries(rows)
    every = sorted(mean_score(row) for row in rows if found(row))
    assert scores(rows, chosen["best"]) == pytest.approx(every[::-1][:10])
    assert scores(rows, chosen["lowest"]) == pytest.approx(every[:10])
    middle = median(every)
    nearest = sorted(every, key=lambda score: abs(score - middle))[:10]
    assert scores(rows, chosen["median"]) == pytest.approx(sorted(nearest, reverse=True), abs=1 / 64)
    assert max(abs(score - middle) for score in scores(rows, chosen["median"])) == pytest.approx(
        max(abs(score - middle) for score in nearest)
    )


def test_most_found() -> None:
    rows = made_rows(1000)
    counts = [len(found(rows[position])) for position in galleries(rows)["most"].positions]
    assert counts == sorted((len(found(row)) for row in rows), reverse=True)[:10]


def test_cut_short_or_repeated() -> None:
    rows = made_rows(60)
    ended = {n for n, row in enumerate(rows) for task in TASKS if row[task.name].get("finish_reason", "stop") != "stop"}
    assert set(galleries(rows, most=60)["cut"].positions) == ended
    few = galleries(rows)["cut"].positions
    assert len(set(few)) == 10
    assert set(few) < ended


def test_some_of_every_code() -> None:
    """Of three codes three or four each, the same code side by side."""
    rows = made_rows(1000)
    codes = [rows[position]["error_code"] for position in galleries(rows)["failed"].positions]
    assert codes == sorted(codes)
    assert sorted(Counter(codes).values()) == [3, 3, 4]


def test_a_code_that_is_rare_is_shown() -> None:
    rows = made_rows(300)
    rows[123] |= {"status": "failed", "error_code": "Z_RARE"}
    assert 123 in galleries(rows, most=4)["failed"].positions


def test_a_row_that_failed_without_a_code() -> None:
    rows = made_rows(20)
    rows[3] |= {"status": "failed", "error_code": None}
    assert 3 in galleries(rows, most=20)["failed"].positions


def test_the_sample_is_fair() -> None:
    """Each of 300 rows is in a tenth of the samples: 10 of 100, and six standard deviations are 18."""
    rows = made_rows(300)
    times = np.zeros(300)
    for seed in range(100):
        positions = galleries(rows, size=300, most=30, seed=seed)["sample"].positions
        assert len(positions) == 30
        assert list(positions) == sorted(positions)
        times[list(positions)] += 1
    assert times.max() < 10 + 18
    assert times[:150].sum() == pytest.approx(1500, abs=200)


def test_chunks_do_not_decide() -> None:
    rows = made_rows(200)
    assert galleries(rows, 3) == galleries(rows, 33) == galleries(rows, 200)


def test_order_does_not_decide() -> None:
    """Rows are drawn by their id: the same ones wherever they lie."""
    rows = made_rows(400)
    turned = rows[::-1]
    for slug, gallery in galleries(rows).items():
        names = {rows[position]["row_id"] for position in gallery.positions}
        assert {turned[position]["row_id"] for position in galleries(turned)[slug].positions} == names


def test_another_seed_shows_others() -> None:
    rows = made_rows(400)
    assert galleries(rows)["sample"] != galleries(rows, seed=1)["sample"]
    assert galleries(rows)["cut"] != galleries(rows, seed=-1)["cut"]


def test_rows_of_one_name() -> None:
    """They are different rows all the same."""
    rows = [{**row, "row_id": "same"} for row in made_rows(100)]
    assert galleries(rows, most=100)["sample"].positions == tuple(range(100))


def test_fewer_rows_than_wanted() -> None:
    rows = made_rows(4, seed=5)
    assert galleries(rows, most=12)["sample"].positions == (0, 1, 2, 3)


def test_nothing_found() -> None:
    """No galleries about scores, where there are none."""
    rows = made_rows(20)
    for row in rows:
        row["things"] = row["spots"] = {"status": "ok", "objects": [], "truncated": False}
    assert list(galleries(rows)) == ["cut", "failed", "sample"]


def test_the_median_of_a_large_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of a sample: near the middle of all, and the memory is the sample's."""
    monkeypatch.setattr(module, "_SAMPLE", 300)
    rows = made_rows(3000)
    every = sorted(mean_score(row) for row in rows if found(row))
    shown = scores(rows, galleries(rows)["median"])
    assert every[int(0.35 * len(every))] <= min(shown)
    assert max(shown) <= every[int(0.65 * len(every))]
