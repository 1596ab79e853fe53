"""Do scores rank? Precision and recall over the threshold, precision by score, and one number for the ranking.

Every stored answer takes part, whatever the threshold of the evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_POINTS = 100  # that a curve is thinned to
_BINS = 10


@dataclass(frozen=True, slots=True)
class Threshold:
    """What answers with ``score`` and above come to; ``recall`` is None without truth."""

    score: float
    precision: float
    recall: float | None
    f1: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers with scores in [low, high), the last bin with its upper end; ``precision`` is the share of right ones."""

    low: float
    high: float
    found: int
    mean_score: float | None
    precision: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """``best`` is the threshold of the greatest F1; ``order`` the chance that a right answer scores above a wrong one
    (ties count half), None where one of the kinds is missing."""

    curve: tuple[Threshold, ...]
    best: Threshold | None
    bins: tuple[Bin, ...]
    order: float | None


def ranking(scores: Sequence[float], right: Sequence[int], true: int) -> Ranking:
    """``right`` says of each of the ``scores`` whether its answer was, ``true`` how many there were to find."""
    score, hit = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
    curve = _curve(score, hit, true)
    best = max(curve, key=lambda at: at.f1, default=None)
    step = max(1, -(-len(curve) // _POINTS))
    thinned = [*curve[:-1:step], *curve[-1:]]
    return Ranking(tuple(thinned), best, tuple(_bins(score, hit)), _order(score, hit))


def _curve(score: np.ndarray, hit: np.ndarray, true: int) -> list[Threshold]:
    """One point for each score there is, greatest first."""
    order = np.argsort(-score, kind="stable")
    score, hits = score[order], np.cumsum(hit[order])
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else np.empty(0, dtype=int)
    return [
        Threshold(
            float(score[n]), float(hits[n] / (n + 1)), float(hits[n] / true) if true else None,
            float(2 * hits[n] / (n + 1 + true)),
        )
        for n in last
    ]  # fmt: skip


def _bins(score: np.ndarray, hit: np.ndarray) -> list[Bin]:
    # In float32, as scores are stored: there 0.7 belongs to the bin that begins with it.
    place = np.clip((score.astype(np.float32) * np.float32(_BINS)).astype(int), 0, _BINS - 1)
    made = []
    for n in range(_BINS):
        here = place == n
        found = int(here.sum())
        means = (float(score[here].mean()), float(hit[here].mean())) if found else (None, None)
        made.append(Bin(n / _BINS, (n + 1) / _BINS, found, *means))
    return made


def _order(score: np.ndarray, hit: np.ndarray) -> float | None:
    good, bad = int(hit.sum()), int(len(hit) - hit.sum())
    if not good or not bad:
        return None
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((rank[hit > 0].sum() - good * (good + 1) / 2) / (good * bad))
