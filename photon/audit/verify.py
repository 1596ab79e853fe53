"""Whether a job's results are what its plan and its ledger say, every row once, and nothing beside them.

Reads each part once, in the order of the plan; of a row it keeps 8 bytes. Answers are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from photon.audit.findings import Finding, Findings
from photon.audit.part_check import PartCheck
from photon.audit.repeats import IdDigests, Repeated
from photon.audit.standing import Standing
from photon.data.writer import part_name, part_number
from photon.job.folder import OutputFolder
from photon.job.quarantine import FOLDER as QUARANTINE
from photon.job.recall import OPEN_FOLDER

#: Exit codes of a check: the folder is not as it should be; nothing is wrong, and a run has to go on.
WRONG, UNFINISHED = 5, 75
_TEMPORARY = re.compile(r"\..*\.(tmp|stale)")


@dataclass(slots=True)
class Verdict:
    """``planned`` is None for an input whose end nobody has seen. ``left`` says what is still to do, None for a
    finished job. ``left_behind`` is what a killed process left, for the next run to see to."""

    root: Path
    rows: int
    planned: int | None
    parts: int
    left: str | None
    found: Findings = field(default_factory=Findings)
    repeated: Repeated = field(default_factory=Repeated)
    left_behind: Findings = field(default_factory=Findings)

    @property
    def exit_code(self) -> int:
        """0 for a finished job in order; 5 where something is wrong, else 75 where it is not finished."""
        if self.found:
            return WRONG
        return 0 if self.left is None else UNFINISHED

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "output": str(self.root),
            "in_order": not self.found,
            "finished": self.left is None,
            "left": self.left,
            "rows": self.rows,
            "planned": self.planned,
            "parts": self.parts,
            "findings": self.found.as_dict(),
            "repeated_row_ids": {
                "ids": self.repeated.ids,
                "rows": self.repeated.rows,
                "shown": dict(self.repeated.shown),
            },
            "left_behind": self.left_behind.as_dict(),
            "exit_code": self.exit_code,
        }

    def text(self) -> str:
        """The lines that a person reads."""
        planned = "an unknown number of" if self.planned is None else f"{self.planned:,}"
        head = (
            f"{self.root}: {self.rows:,} of {planned} rows in {self.parts:,} {'part' if self.parts == 1 else 'parts'}"
        )
        lines = [f"{head}, {'NOT in order' if self.found else 'in order'}", *self.found.lines()]
        if self.left is not None:
            lines.append(f"not finished: {self.left}")
        if self.repeated.ids:
            some = ", ".join(f"{name!r} {count} times" for name, count in self.repeated.shown)
            lines.append(
                f"{self.repeated.ids:,} row ids come more than once, on {self.repeated.rows:,} rows: {some}; "
                "the input's ids are so, rows are told apart by source"
            )
        if self.left_behind:
            count = sum(self.left_behind.counts.values())
            lines.append(f"{count:,} files were left by a process that was killed; the next run sees to them")
        return "\n".join(lines)


def verify(root: Path) -> Verdict:
    """Checks the job in ``root``. Raises ``UsageError`` where there is none, ``OutputError`` for a plan or a ledger
    that cannot be read."""
    standing = Standing.read(root)
    records, plan = standing.records, standing.plan
    verdict = Verdict(standing.root, standing.rows, plan.rows, len(records), standing.left)
    check = PartCheck(standing.root, plan)
    digests = IdDigests(standing.rows)
    for record in records:
        if not plan.is_endless and record.chunk >= plan.chunks:
            verdict.found.add(Finding("surplus", f"the ledger has chunk {record.chunk}, the plan {plan.chunks} chunks"))
            continue
        for finding in check.findings(record):
            verdict.found.add(finding)
        digests.add(check.row_ids(record))
    verdict.repeated = digests.repeated(map(check.row_ids, records))
    if plan.is_endless and standing.chunks is not None:
        verdict.planned = standing.rows
    for finding in _beside(standing):
        # What a killed process left is the next run's to clear, and what a live one has there is in use.
        if standing.left is None or finding.kind in ("foreign", "surplus"):
            verdict.found.add(finding)
        elif not standing.live:
            verdict.left_behind.add(finding)
    return verdict


def _beside(standing: Standing) -> Iterator[Finding]:
    """Files in the folder that no record tells of."""
    root, plan = standing.root, standing.plan
    for path in OutputFolder(root).foreign():
        yield Finding("foreign", f"{path} is not ours")
    for folder in (root, *(path for path in sorted(root.iterdir()) if path.is_dir())):
        for path in sorted(folder.iterdir()):
            if _TEMPORARY.fullmatch(path.name):
                yield Finding("leftover", f"{path} was left by a process that was killed")
    for inside in ("data", QUARANTINE, OPEN_FOLDER):
        for path in sorted((root / inside).glob("part-*.arrow")):
            number = _number(path)
            if number is None or number >= plan.chunks:
                yield Finding("surplus", f"{path} is the part of no chunk")
            elif inside == OPEN_FOLDER and standing.left is None:
                yield Finding("leftover", f"{path} is of a chunk that is committed")
            elif inside == "data" and number not in standing.ledger.records:
                yield Finding("unrecorded", f"{path} has no record in the ledger")


def _number(path: Path) -> int | None:
    """The chunk of a part; None where that chunk's part has another name."""
    number = part_number(path.name)
    return number if number is not None and part_name(number) == path.name else None
