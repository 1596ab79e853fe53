"""Do scores rank? Precision and recall over the threshold, precision by score, and one number for the ranking.

Every stored answer takes part, whatever the threshold of the evaluation.
"""

from __future__ import annotations

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


def ranking(scores: np.ndarray, right: np.ndarray, true: int) -> Ranking:
    """``right`` says of each of the ``scores`` whether its answer was, ``true`` how many there were to find."""
    score, hit = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return Ranking(*_curve(score, hit, true), tuple(_bins(score, hit)), _order(score, hit))


def _curve(score: np.ndarray, hit: np.ndarray, true: int) -> tuple[tuple[Threshold, ...], Threshold | None]:
    """Points from the greatest score down, thinned, and the one with the greatest F1 of all, the first of equals.
    Arrays hold one entry for each score that there is; a million of these as ``Threshold`` would take 250 MB."""
    if not len(score):
        return (), None
    order = np.argsort(-score, kind="stable")
    score, hits = score[order], np.cumsum(hit[order])
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))  # of the answers with one score
    score, hits, found = score[last], hits[last], last + 1
    f1 = 2 * hits / (found + true)

    def point(n: int) -> Threshold:
        recall = float(hits[n] / true) if true else None
        return Threshold(float(score[n]), float(hits[n] / found[n]), recall, float(f1[n]))

    step = -(-len(last) // _POINTS)
    shown = [*range(0, len(last) - 1, step), len(last) - 1]
    return tuple(map(point, shown)), point(int(f1.argmax()))


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
