"""The figures of one class or of several pooled, and the mean over classes; None for a share of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from photon.evaluate.average_precision import AveragePrecision
from photon.evaluate.options import Judging
from photon.evaluate.tally import ClassTally

MEANS = ("precision", "recall", "f1", "ap50", "ap", "count_error", "empty_right")


@dataclass(frozen=True, slots=True)
class Figures:
    """``found`` answers, ``right`` of them, for ``true`` objects; the rest as in ``ClassTally``."""

    asked: int
    true: int
    found: int
    right: int
    empty: int
    empty_rows_right: int
    counted: int
    off: int
    average: AveragePrecision | None = None

    @property
    def precision(self) -> float | None:
        return _share(self.right, self.found)

    @property
    def recall(self) -> float | None:
        return _share(self.right, self.true)

    @property
    def f1(self) -> float | None:
        return _share(2 * self.right, self.found + self.true)

    @property
    def count_error(self) -> float | None:
        """How far the number found is off, mean over the rows that were answered."""
        return _share(self.off, self.counted)

    @property
    def empty_right(self) -> float | None:
        """Of the rows with nothing to find, the share in which nothing was found."""
        return _share(self.empty_rows_right, self.empty)

    @property
    def ap50(self) -> float | None:
        return None if self.average is None else self.average.ap50

    @property
    def ap(self) -> float | None:
        return None if self.average is None else self.average.ap

    def as_dict(self) -> dict[str, Any]:
        counts = {"asked": self.asked, "true": self.true, "found": self.found, "right": self.right}
        more = {"wrong": self.found - self.right, "missed": self.true - self.right, "empty_rows": self.empty}
        return {**counts, **more, **{name: getattr(self, name) for name in MEANS}}


def figures_of(tally: ClassTally, judging: Judging, average: AveragePrecision | None) -> Figures:
    counts = np.asarray(tally.scores) >= judging.lowest
    return Figures(
        asked=tally.asked,
        true=tally.true,
        found=int(counts.sum()),
        right=int(np.asarray(tally.right)[counts].sum()),
        empty=tally.empty,
        empty_rows_right=tally.empty_right,
        counted=tally.counted,
        off=tally.off,
        average=average,
    )


def pooled(classes: Sequence[Figures]) -> Figures:
    """The micro row: counts added up, ``asked`` to pairs of row and class. It has no average precision, which is a mean
    over classes by definition."""
    names = ("asked", "true", "found", "right", "empty", "empty_rows_right", "counted", "off")
    return Figures(**{name: sum(getattr(made, name) for made in classes) for name in names})


def mean(classes: Sequence[Figures]) -> dict[str, float | None]:
    """The macro row: each figure's mean over the classes with something to find, every class alike. A class of which
    nothing was found has precision 0 here. ``empty_right``: over the classes that have it."""
    with_truth = [made for made in classes if made.true]
    made: dict[str, float | None] = {}
    for name in MEANS:
        values = [getattr(figures, name) for figures in (classes if name == "empty_right" else with_truth)]
        if name == "precision":
            values = [value or 0.0 for value in values]
        values = [value for value in values if value is not None]
        made[name] = sum(values) / len(values) if values else None
    return made


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
