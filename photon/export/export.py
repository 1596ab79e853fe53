"""``export``: a run's answers written for another tool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from photon.export.coco import Coco
from photon.export.fiftyone import FiftyOne
from photon.export.flat import JsonLines, Parquet
from photon.export.hf import HuggingFace
from photon.export.labelstudio import LabelStudio
from photon.export.options import ExportOptions, format_of
from photon.export.plan import Plan, make_plan
from photon.export.rows import ExportRow, Tally, export_rows
from photon.export.staging import staged
from photon.export.voc import Voc
from photon.export.yolo import Yolo
from photon.job.output import RunOutput


class Writer(Protocol):
    """Writes one format, row by row, to a place that is there for it alone."""

    def __init__(self, place: Path, plan: Plan) -> None: ...

    def add(self, row: ExportRow) -> None: ...

    def close(self) -> None: ...


_WRITERS: dict[str, type[Writer]] = {
    "coco": Coco,
    "yolo": Yolo,
    "voc": Voc,
    "fiftyone": FiftyOne,
    "labelstudio": LabelStudio,
    "hf": HuggingFace,
    "jsonl": JsonLines,
    "parquet": Parquet,
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of a run's rows."""

    path: Path
    plan: Plan
    tally: Tally

    def text(self) -> str:
        """What to tell a person: what is there, and what is not."""
        tally, plan = self.tally, self.plan
        found = [f"{tally.boxes:,} boxes"] if plan.of_kind("objects") else []
        found += [f"{tally.points:,} points"] if plan.of_kind("points") else []
        parts = [f"{part} {tally.parts[part]:,}" for part in plan.parts]
        told = [f"wrote {self.path} ({plan.kind.name}): {', '.join([f'{tally.rows:,} rows', *found, *parts])}"]
        if plan.survey.failed:
            told.append(f"failed rows left out: {plan.survey.failed:,}")
        if tally.flat and not plan.kind.is_file:
            told.append(f"boxes without area left out: {tally.flat:,}")
        if plan.left_out:
            names = ", ".join(f"{task.name} ({task.type})" for task in plan.left_out)
            told.append(f"{plan.kind.name} cannot hold {names}")
        if plan.output.is_running:
            told.append("the run has not ended, these are its rows so far")
        return "; ".join(told)


def write_export(folder: Path, form: str, path: Path, options: ExportOptions | None = None) -> Exported:
    """Writes the output in ``folder`` to ``path`` in format ``form``, whole or not at all.

    Raises ``UsageError`` for wrong names and options, ``InputError`` where the output or the pictures cannot be read,
    ``OutputError`` for a place that is taken or cannot be written.
    """
    options, kind = options or ExportOptions(), format_of(form)
    output, tally = RunOutput(folder), Tally()
    with staged(path, output.root, "export", is_file=kind.is_file) as place:
        plan = make_plan(output, kind, options)
        writer = _WRITERS[kind.name](place, plan)
        try:
            for row in export_rows(plan, tally):
                writer.add(row)
        finally:
            writer.close()
    return Exported(path, plan, tally)
