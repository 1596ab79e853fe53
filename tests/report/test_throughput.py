"""Rows a second over time, from when parts were written."""

from __future__ import annotations

import pytest

from photon.report.throughput import throughput


def test_a_steady_run() -> None:
    pace = throughput([(1010.0 + 10 * n, 50) for n in range(6)], 1000.0, 60.0)
    assert pace is not None
    assert pace.seconds == 60
    assert pace.rates == pytest.approx((5.0,) * 6)


def test_a_run_that_slows_down() -> None:
    """100 rows in 10 s, then 100 in 30 s; parts in any order."""
    pace = throughput([(1040.0, 100), (1010.0, 100)], 1000.0, 40.0)
    assert pace is not None
    # Two stretches of 20 s: 100 rows and a third of 100, then two thirds of 100.
    assert pace.rates == pytest.approx(((100 + 100 / 3) / 20, 200 / 3 / 20))


def test_all_rows_are_counted() -> None:
    """However many parts: 1,000 of 7 rows, of which some came at one time."""
    pace = throughput([(1001.0 + (n // 3), 7) for n in range(1000)], 1000.0, None)
    assert pace is not None
    assert len(pace.rates) == 60
    assert pace.rows == 7000
    assert sum(pace.rates) * pace.seconds / 60 == pytest.approx(7000)


def test_parts_of_other_times() -> None:
    """Of an earlier run into the same output, and of a shard that came later."""
    pace = throughput([(500.0, 30), (1005.0, 10), (1010.0, 10), (2000.0, 40)], 1000.0, 12.0)
    assert pace is not None
    assert (pace.seconds, pace.rows, pace.others) == (10, 20, 70)
    assert pace.rates == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize("written", [[], [(900.0, 5)], [(1000.0, 5)], [(5000.0, 5)]])
def test_times_that_are_not_the_run_s(written: list[tuple[float, int]]) -> None:
    """Without parts, or copied earlier or later."""
    assert throughput(written, 1000.0, 10.0) is None
