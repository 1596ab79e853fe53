"""The static sampler against the dynamic one: every number the same, whatever the rows demand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from photon.engine.static_sampling import StaticSampler, heads_for
from photon.skills.grammar import NOBODY, Want
from tests.engine.test_sampling import COORD, END, SIZE, hidden, ints, plan, sampler

ROWS, VOCABULARY = 6, 12
TEXT = (Want.NOTHING, Want.TOKEN)
GROUNDED = (Want.NOTHING, Want.BOUNDARY, Want.COORDINATE, Want.SIZE, Want.DECIDE)
MIXED = (*GROUNDED, Want.TOKEN, Want.TOKEN | Want.COORDINATE, Want.TOKEN | Want.COORDINATE | Want.SIZE)


def drawn_demands(dice: random.Random, wants: tuple[int, ...]) -> list[list[int]]:
    rows = []
    for _ in range(ROWS):
        want = dice.choice(wants)
        forced = 0 if want & (Want.TOKEN | Want.DECIDE) else {Want.COORDINATE: COORD, Want.SIZE: SIZE}.get(want, 0)
        banned = dice.random() < 0.5
        rows.append([want, forced, *((dice.randrange(VOCABULARY), 7) if banned else (NOBODY, NOBODY))])
    return rows


@pytest.mark.parametrize("decision", ["masked", "reference"])
@pytest.mark.parametrize(("heads", "wants"), [("text", TEXT), ("grounded", GROUNDED), ("mixed", MIXED)])
def test_it_samples_what_the_dynamic_one_samples(decision: Any, heads: Any, wants: tuple[int, ...]) -> None:
    dice = random.Random(heads + decision)
    seen: set[int] = set()
    for seed in range(60):
        logits = torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(seed))
        logits[:, [END, COORD, SIZE]] += 1.5
        demands = drawn_demands(dice, wants)
        free = [bans for want, _, *bans in demands if want & Want.TOKEN]
        dynamic = sampler(logits, decision)
        expected = dynamic(
            hidden(ROWS),
            plan(
                [row[0] for row in demands], forced=ints([row[1] for row in demands]), bans=ints(free) if free else None
            ),
        )
        found = StaticSampler(dynamic)(hidden(ROWS), ints(demands), heads)
        for name in expected._fields:
            ours, theirs = getattr(found, name), getattr(expected, name)
            assert ours.dtype == theirs.dtype, name
            assert torch.equal(ours, theirs), (name, demands, ours, theirs)
        seen.update(expected.kinds.tolist())
    assert seen == ({0} if heads == "text" else {0, 1, 2})


@pytest.mark.parametrize(
    ("wants", "heads"),
    [
        ([Want.TOKEN, Want.NOTHING], "text"),
        ([Want.NOTHING], "text"),
        ([Want.BOUNDARY, Want.SIZE, Want.NOTHING], "grounded"),
        ([Want.TOKEN | Want.COORDINATE], "mixed"),
        ([Want.TOKEN, Want.COORDINATE], "mixed"),
        ([Want.DECIDE], "grounded"),
    ],
)
def test_the_fewest_heads_that_serve(wants: list[int], heads: str) -> None:
    assert heads_for(np.array(wants)) == heads


def test_too_few_heads_would_show() -> None:
    """The comparison above can fail: heads that are not asked leave what was forced."""
    logits = torch.zeros(ROWS, VOCABULARY)
    logits[:, 9] = 5.0
    static = StaticSampler(sampler(logits))
    demands = ints([[Want.TOKEN, 0, NOBODY, NOBODY]] * ROWS)
    assert static(hidden(ROWS), demands, "text").tokens.tolist() == [9] * ROWS
    assert static(hidden(ROWS), demands, "grounded").tokens.tolist() == [0] * ROWS
