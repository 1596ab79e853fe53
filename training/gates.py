"""The steps of the curriculum and what each of them trains on: one place to tune.

See docs/model-in-the-box.md for how these came about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from training.scenes import FEW, MIXED, SINGLE, Recipe

PLAIN = replace(FEW, name="plain", sizes=(0.16, 0.16, 0.5), distractors=0, overlap=0.0, outlines=0.0)
"""To begin with: nothing that distracts, nothing small."""

CROWDED = replace(MIXED, name="crowded", empty=0.0, crowds=1.0)
"""The crowds of MIXED are too few to learn from."""


@dataclass(frozen=True, slots=True)
class Gate:
    """``scenes``: recipes with their shares. ``images`` a step, of which the first ``asked`` have questions, the others
    train the vision tower alone. ``questions`` drawn for a picture, as many of them used as fit into ``tokens``
    positions, those answered in words only at the share ``words``. ``rate`` is the text model's, ``vision_rate`` that
    of the vision tower, which answers do not train where ``detached``. ``width``: of the smoothed bins, in bins, from
    and to. ``seeds``: the first one; gates do not share any.
    """

    name: str
    scenes: tuple[tuple[Recipe, float], ...]
    steps: int
    images: int
    seeds: int
    asked: int = 0
    questions: int = 0
    tokens: int = 0
    words: float = 0.0
    rate: float = 1e-3
    vision_rate: float = 1e-3
    warm_up: int = 100
    decay: float = 0.25
    width: tuple[float, float] = (1.0, 1.0)
    jitter: float = 0.3
    dense: float = 1.0
    detached: bool = False

    def recipe(self, rng: np.random.Generator) -> Recipe:
        pick = rng.random()
        for recipe, share in self.scenes:
            pick -= share
            if pick < 0:
                return recipe
        return self.scenes[-1][0]


def up_to(objects: int) -> Recipe:
    return replace(FEW, name=f"up to {objects}", objects=(1, objects))


GATES = {
    gate.name: gate
    for gate in (
        Gate("g0", ((PLAIN, 0.5), (FEW, 0.5)), steps=1000, images=32, seeds=0, rate=2e-3, vision_rate=2e-3, decay=0.0),
        Gate(
            "g1",
            ((SINGLE, 0.3), (up_to(2), 0.3), (FEW, 0.4)),
            steps=350,
            images=28,
            asked=16,
            seeds=100_000_000,
            questions=12,
            tokens=112,
            words=0.3,
            rate=2e-3,
            vision_rate=2e-3,
            width=(7.0, 1.0),
            detached=True,
            decay=0.0,
        ),
        Gate(
            "g2",
            ((FEW, 0.75), (SINGLE, 0.25)),
            steps=2400,
            images=32,
            asked=10,
            seeds=200_000_000,
            questions=16,
            tokens=144,
            words=0.4,
            rate=1.5e-3,
            vision_rate=8e-4,
            warm_up=50,
            width=(3.5, 0.8),
        ),
        Gate(
            "g3",
            ((MIXED, 0.52), (CROWDED, 0.08), (FEW, 0.4)),
            steps=2400,
            images=24,
            asked=12,
            seeds=300_000_000,
            questions=16,
            tokens=192,
            words=1.0,
            rate=1.5e-3,
            vision_rate=8e-4,
            warm_up=20,
            decay=0.4,
            width=(0.8, 0.8),
        ),
        Gate(
            "g4",
            ((MIXED, 0.55), (CROWDED, 0.2), (FEW, 0.25)),
            steps=1800,
            images=24,
            asked=12,
            seeds=400_000_000,
            questions=16,
            tokens=192,
            words=1.0,
            rate=1e-3,
            vision_rate=6e-4,
            warm_up=50,
            decay=0.5,
            width=(0.8, 0.8),
        ),
    )
}


def smoke_gates() -> list[Gate]:
    """For the smoke training: the first two gates, short."""
    return [
        replace(GATES["g0"], steps=100, images=8, warm_up=10),
        replace(GATES["g1"], steps=100, images=8, warm_up=10, asked=8, questions=6, tokens=48),
    ]
