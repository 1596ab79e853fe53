"""Thousands of requests of every length on the device that a CPU run uses, with failures, requests that are given up,
and runs left early."""

from __future__ import annotations

import random

import pytest

from photon.device.threads import ThreadDevice
from tests.engine import micro
from tests.engine.mixture import CODES, Mixture


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_everything_is_home_after_two_thousand_requests(depth: int) -> None:
    """``run`` checks that pages, rows, slots and ring are home at its end; so does the run after one that was left."""
    dice = random.Random(depth)
    engine = micro.engine(ThreadDevice(), depth=depth, max_batch=6)
    mixture = Mixture(engine, depth)
    done = 0
    while done < 2000:
        leave_after = dice.choice([None, None, dice.randrange(1, 400)])
        seen = mixture.run(500, leave_after=leave_after)
        if leave_after is None:
            assert seen == set(range(500))
        done += len(seen)
    engine.close()
    assert set(mixture.codes) == CODES
    assert mixture.codes[None] > 1000
    assert mixture.codes["CANCELLED"] > 50
