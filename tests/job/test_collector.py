"""The garbage collector's thresholds: raised while rows go through, the caller's own before and after."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from photon.job.collector import collecting_less


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("callers", "inside"),
    [
        ((700, 10, 10), (10_000, 10, 10)),
        ((50_000, 5, 7), (50_000, 5, 7)),
        ((0, 10, 10), (0, 10, 10)),  # it is off, and stays so
    ],
)
def test_thresholds_inside_and_after(callers: tuple[int, int, int], inside: tuple[int, int, int]) -> None:
    gc.set_threshold(*callers)
    with collecting_less():
        assert gc.get_threshold() == inside
    assert gc.get_threshold() == callers
    with pytest.raises(KeyError), collecting_less():
        raise KeyError
    assert gc.get_threshold() == callers
