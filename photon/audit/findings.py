"""What a check of a job's results found wrong: every kind counted, the first few of each told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Of one kind, so many are told in full.
SHOWN = 5
#: The kinds, with what to do about each.
ADVICE = {
    "missing": "run again: its rows are done again",
    "damaged": "remove that part and run again: its rows are done again",
    "schema": "remove that part and run again: its rows are done again",
    "rows": "remove that part and run again: its rows are done again",
    "positions": "remove that part and run again: its rows are done again",
    "counts": "remove that part and run again: its rows are done again",
    "quarantine": "remove that chunk's part from data and run again: its rows are done again",
    "unrecorded": "run again: it is taken over, or its rows are done again",
    "surplus": "move it away: no plan tells of it, and whoever opens the folder reads it",
    "foreign": "move it away: the folder is for results alone",
    "leftover": "remove it: nothing needs it",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``kind`` is one of ``ADVICE``; ``message`` says what and where."""

    kind: str
    message: str


@dataclass(slots=True)
class Findings:
    counts: dict[str, int] = field(default_factory=dict)
    shown: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        count = self.counts[finding.kind] = self.counts.get(finding.kind, 0) + 1
        if count <= SHOWN:
            self.shown.append(finding)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def lines(self) -> Iterator[str]:
        """For a person: each kind with its advice."""
        for kind, count in self.counts.items():
            yield f"{kind}: {count:,}; {ADVICE[kind]}"
            yield from (f"  {finding.message}" for finding in self.shown if finding.kind == kind)
            if count > SHOWN:
                yield f"  and {count - SHOWN:,} more"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "counts": self.counts,
            "shown": [{"kind": finding.kind, "message": finding.message} for finding in self.shown],
        }
