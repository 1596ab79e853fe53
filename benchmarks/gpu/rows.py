"""A row of the day's report, and what a section is told: a section is a generator of rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Status = Literal["ok", "failed", "skipped", "not run"]
NO_CUDA = "no CUDA device"
OUT_OF_TIME = "out of time"


class Figure(NamedTuple):
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement or check; ``why`` it has no answer, or what was wrong. ``figures`` by name."""

    what: str
    status: Status = "ok"
    why: str | None = None
    figures: dict[str, Figure] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        figures = {  # JSON has no word for what is not finite
            name: {"value": figure.value if math.isfinite(figure.value) else None, "unit": figure.unit}
            for name, figure in self.figures.items()
        }
        return {"what": self.what, "status": self.status, "why": self.why, "figures": figures}


def skipped(what: str, why: str = NO_CUDA) -> Row:
    return Row(what, "skipped", why)


@dataclass(frozen=True, slots=True)
class Day:
    """``device``: cpu or cuda. ``deadline``: of the section at hand, on the monotonic clock. ``earlier``: the rows of
    the sections before it."""

    device: str
    smoke: bool
    deadline: float
    earlier: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def cuda(self) -> bool:
        return self.device == "cuda"

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > self.deadline

    def attempt(self, what: str, measure: Callable[[], dict[str, Figure]]) -> Row:
        """The row of one measurement: what goes wrong with it costs this row alone."""
        if self.out_of_time:
            return Row(what, "not run", OUT_OF_TIME)
        try:
            return Row(what, figures=measure())
        except Unavailable as error:
            return skipped(what, str(error))
        except Exception as error:
            return Row(what, "failed", f"{type(error).__name__}: {error}"[:600])

    def figure(self, section: str, name: str) -> float | None:
        """A figure of an earlier section, None where it was not measured."""
        values = (row.figures[name].value for row in self.earlier.get(section, ()) if name in row.figures)
        return next(values, None)


class Unavailable(Exception):
    """Something that a measurement needs is not here: no failure."""


Section = Callable[[Day], Iterator[Row]]
