"""The day's report: one JSON file, written anew after every row, and a table for people."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu.floors import FORMULAS
from benchmarks.gpu.rows import Row

_WIDTH = 60


@dataclass(slots=True)
class Outcome:
    """One section: ``status`` is failed where any of its rows failed or it did not come to its end (``why``), not run
    or skipped where nothing of it was measured, else ok."""

    name: str
    budget: float
    rows: list[Row] = field(default_factory=list)
    why: str | None = None
    seconds: float = 0.0
    done: bool = False

    @property
    def status(self) -> str:
        statuses = {row.status for row in self.rows}
        if self.why is not None or "failed" in statuses:
            return "failed"
        if not self.done:
            return "not run" if not self.rows else "running"
        return next(status for status in ("ok", "not run", "skipped") if status in statuses or status == "skipped")


class Report:
    def __init__(self, machine: dict[str, Any], *, smoke: bool, device: str, out: Path) -> None:
        self._machine = machine
        self._about = {"what": "photon-batch GPU day", "smoke": smoke, "device": device, "machine": machine}
        self._out, self.device, self.smoke = out, device, smoke
        self.sections: list[Outcome] = []

    @property
    def counts(self) -> dict[str, int]:
        rows = [row.status for section in self.sections for row in section.rows]
        return {status: rows.count(status) for status in ("ok", "failed", "skipped", "not run")}

    @property
    def failed(self) -> list[str]:
        return [section.name for section in self.sections if section.status == "failed"]

    def as_dict(self) -> dict[str, Any]:
        labels = {"smoke": self.smoke, "device": self.device}
        sections = [
            {
                "name": section.name,
                "status": section.status,
                "why": section.why,
                "seconds": round(section.seconds, 3),
                "budget_seconds": round(section.budget, 1),
                "rows": [{**row.as_dict(), **labels} for row in section.rows],
            }
            for section in self.sections
        ]
        about = {**self._about, "floor_formulas": list(FORMULAS)}
        return {**about, "rows": self.counts, "failed_sections": self.failed, "sections": sections}

    def save(self) -> None:
        """Whole or not at all: what was measured so far survives whatever comes next."""
        self._out.parent.mkdir(parents=True, exist_ok=True)
        beside = self._out.with_name(self._out.name + ".part")
        beside.write_text(json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        os.replace(beside, self._out)

    def head(self) -> str:
        machine = ", ".join(f"{name} {value}" for name, value in self._machine.items() if value is not None)
        kind = "SMOKE RUN: small sizes, its figures mean nothing" if self.smoke else "GPU day"
        return f"{kind}; device {self.device}\n{machine}"

    def text(self, section: Outcome) -> str:
        """A section as a table."""
        why = f": {section.why}" if section.why else ""
        label = f"{self.device}, smoke" if self.smoke else self.device
        head = f"\n== {section.name} [{label}]: {section.status}{why} ({section.seconds:.1f} s)"
        names = list(dict.fromkeys(name for row in section.rows for name in row.figures))
        units = {name: figure.unit for row in section.rows for name, figure in row.figures.items()}
        widths = {name: max(len(name), len(units[name]) + 2, 9) + 2 for name in names}
        lines = [head]
        if names:
            lines.append(" " * _WIDTH + "".join(f"{name:>{widths[name]}}" for name in names))
            lines.append(" " * _WIDTH + "".join(f"{'[' + units[name] + ']':>{widths[name]}}" for name in names))
        for row in section.rows:
            if row.status != "ok":
                lines.append(f"{row.what:{_WIDTH}}  {row.status}{': ' + row.why if row.why else ''}")
                continue
            cells = (f"{_cell(row, name):>{widths[name]}}" for name in names)
            lines.append(f"{row.what:{_WIDTH}}{''.join(cells) if row.figures else '  ok'}".rstrip())
        if section.name == "floors":
            lines += [f"  {formula}" for formula in FORMULAS]
        return "\n".join(lines)


def _cell(row: Row, name: str) -> str:
    return f"{row.figures[name].value:.4g}" if name in row.figures else "-"
