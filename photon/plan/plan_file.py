"""plan.json, and what a grown input added to it: written once, by whoever comes first, and never changed.

A small head, plan.json or plan-0001.json and so on, names the file with the units, one JSON object a line, and is made
last: a plan is there as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from photon.data.disk import blaming, create
from photon.data.unit import Unit
from photon.errors import OutputError
from photon.plan.plan import Plan, Span

PLAN_VERSION = 1
#: What the files are named like, for whoever has to know ours.
NAMES = r"plan(-\d{4})?\.json|units-[0-9a-f]+\.jsonl|\.plan.*\.tmp"


def head_name(generation: int) -> str:
    return f"plan-{generation:04d}.json" if generation else "plan.json"


def read_plan(root: Path, *, units: bool = True) -> Plan | None:
    """The plan in ``root``, None where there is none. Without its ``units``, which may be millions of pictures, it
    tells how many rows and chunks there are, and not where they are. Raises ``OutputError`` for one that cannot be
    read."""
    if not (root / head_name(0)).exists():
        return None
    heads: list[dict[str, Any]] = []
    found: list[Unit] = []
    while (path := root / head_name(len(heads))).exists():
        head = _read_head(path)
        for number, unit in _read_units(root / head["units_file"]) if units else ():
            found[number : number + 1] = [unit]
        heads.append(head)
    first = heads[0]
    spans = [Span(*span) for head in heads for span in head["spans"]]
    reading = heads[-1]["reading"]
    return Plan(first["job_id"], first["chunk_rows"], first["reader"], reading, found, spans, len(heads))


def create_plan(root: Path, plan: Plan) -> bool:
    """Freezes the first plan of a job. False where another process was quicker: then its plan counts."""
    return _create(root, plan, 0, enumerate(plan.units), plan.spans)


def extend_plan(root: Path, plan: Plan, units: Iterable[tuple[int, Unit]], spans: Iterable[Span]) -> bool:
    """Adds a generation to ``plan``: units, new or grown, by their numbers, and the spans of new rows. False where
    another process was quicker."""
    return _create(root, plan, plan.generations, units, spans)


def _create(root: Path, plan: Plan, generation: int, units: Iterable[tuple[int, Unit]], spans: Iterable[Span]) -> bool:
    beside = f"units-{secrets.token_hex(8)}.jsonl"
    head = {
        "plan_version": PLAN_VERSION,
        "generation": generation,
        "job_id": plan.job_id,
        "chunk_rows": plan.chunk_rows,
        "reader": plan.reader,
        "reading": plan.reading,
        "units_file": beside,
        "spans": [[span.unit, span.start, span.stop] for span in spans],
    }
    path = root / head_name(generation)
    with blaming(path):
        _write(root / beside, (json.dumps({"number": n, **unit.as_dict()}) + "\n" for n, unit in units))
        if not create(path, json.dumps(head) + "\n"):
            (root / beside).unlink(missing_ok=True)  # the winner may have swept it away
            return False
    return True


def _write(path: Path, lines: Iterable[str]) -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _read_head(path: Path) -> dict[str, Any]:
    try:
        head: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if head["plan_version"] != PLAN_VERSION:
            told = f"{path} is of plan version {head['plan_version']}, this program's is {PLAN_VERSION}"
            raise OutputError(f"{told}; run it with the program that made it, or start over with --fresh")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"cannot read {path}: {error!r}; restore it, or start over with --fresh") from error
    return head


def _read_units(path: Path) -> Iterator[tuple[int, Unit]]:
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                data = json.loads(line)
                yield data["number"], Unit.from_dict(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"cannot read {path}: {error!r}; restore it, or start over with --fresh") from error
