"""Counts of a run as it goes: rows, failures by code with the first example of each, requests, objects found."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from photon.job.outcome import Outcome

log = logging.getLogger("photon.job")


@dataclass(slots=True)
class CodeCount:
    """How often rows failed with ``code``. ``row_id`` and ``message`` are the first such row's; without an id the
    message tells where to look."""

    code: str
    count: int
    row_id: str
    message: str

    @property
    def first(self) -> str:
        """The example, for a person."""
        return f"first: row {self.row_id}: {self.message}" if self.row_id else self.message


def code_lines(codes: Sequence[CodeCount]) -> list[str]:
    """A line for each, in columns."""
    width = max((len(code.code) for code in codes), default=0)
    return [f"  {code.code:<{width}}  {code.count:>6,}  {code.first}" for code in codes]


@dataclass(slots=True)
class Tally:
    """``rows`` = ``ok`` + the failed. The clock starts when the tally is made."""

    rows: int = 0
    ok: int = 0
    requests: int = 0
    found: int = 0
    odd_orientations: int = 0
    codes: dict[str, CodeCount] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def failed(self) -> int:
        return self.rows - self.ok

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def count(self, outcome: Outcome) -> None:
        """Takes in one finished row. The first failure of a code is logged in full, later ones are only counted."""
        self.rows += 1
        self.found += outcome.found
        if outcome.odd_orientation:
            if not self.odd_orientations:
                told = "row %s has an EXIF orientation that is none; such pictures are taken as stored, and counted"
                log.warning(told, outcome.row_id, extra={"row": outcome.row_id})
            self.odd_orientations += 1
        failure = outcome.failure
        if failure is None:
            self.ok += 1
        elif failure.code in self.codes:
            self.codes[failure.code].count += 1
        else:
            message = " ".join(failure.message.split())
            self.codes[failure.code] = CodeCount(failure.code, 1, outcome.row_id, message)
            told = "row %s failed: %s: %s (more of this code are counted, not shown)"
            beside = {"row": outcome.row_id, "code": failure.code}
            log.warning(told, outcome.row_id, failure.code, message, extra=beside)
