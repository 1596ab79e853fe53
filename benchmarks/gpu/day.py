"""The sections in their order, each in a process of its own and within its part of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gpu import ceilings, correctness, detect, machine, safety, stray, text
from benchmarks.gpu.isolation import SectionError, isolated
from benchmarks.gpu.report import Outcome, Report
from benchmarks.gpu.rows import Day, Section

_FACTS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Planned:
    """``seconds`` and ``smoke_seconds``: after so many, a section starts nothing more."""

    section: Section
    seconds: float
    smoke_seconds: float


#: 500 s together; what is in the middle of something then may end it, within ``GRACE``.
SECTIONS: dict[str, Planned] = {
    "correctness": Planned(correctness.section, 70, 20),
    "safety": Planned(safety.section, 45, 15),
    "ceilings": Planned(ceilings.section, 15, 10),
    "floors": Planned(ceilings.floor_section, 5, 5),
    "detect": Planned(detect.section, 245, 15),
    "stray": Planned(stray.section, 40, 10),
    "text": Planned(text.section, 80, 10),
}
GRACE, SMOKE_GRACE = 15.0, 5.0
TOTAL_SECONDS, SMOKE_SECONDS = 520.0, 42.0


def run(
    *, smoke: bool, out: Path, sections: Mapping[str, Planned], tell: Callable[[str], None], stretch: float = 1.0
) -> Report:
    """Run ``sections``, telling the table as it grows; ``out`` holds what there is at any time. Everything may take
    ``stretch`` times as long as planned."""
    began = time.monotonic()
    (found,) = _facts(began)
    device = found.pop("device")
    report = Report(found, smoke=smoke, device=device, out=out)
    report.sections = [
        Outcome(name, stretch * (planned.smoke_seconds if smoke else planned.seconds))
        for name, planned in sections.items()
    ]
    report.save()
    tell(report.head())
    until = began + stretch * (SMOKE_SECONDS if smoke else TOTAL_SECONDS)
    for outcome in report.sections:
        if time.monotonic() < until:
            _run(report, outcome, sections[outcome.name].section, until)
        tell(report.text(outcome))
    return report


def _run(report: Report, outcome: Outcome, section: Section, until: float) -> None:
    began = time.monotonic()
    deadline = min(began + outcome.budget, until)
    day = Day(report.device, report.smoke, deadline, {section.name: section.rows for section in report.sections})
    try:
        for row in isolated(partial(section, day), deadline=deadline, grace=SMOKE_GRACE if report.smoke else GRACE):
            outcome.rows.append(row)
            report.save()
        outcome.done = True
    except SectionError as error:
        outcome.why = str(error)
    outcome.seconds = time.monotonic() - began
    report.save()


def _facts(began: float) -> Iterator[dict[str, Any]]:
    try:
        yield from isolated(machine.facts, deadline=began + _FACTS_SECONDS, grace=0.0)
    except SectionError as error:
        yield {"device": "cpu", "facts": f"not known: {error}"}


def tail(report: Report) -> str:
    """One line for the end."""
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.items() if count)
    failed = f"; FAILED sections: {', '.join(report.failed)}" if report.failed else ""
    return f"\n{counts}{failed}"
