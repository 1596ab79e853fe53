"""A run's output folder, read: its record, and its rows, in a stream or here and there, of the columns that are wanted.

A run may be going on: what is read then are the parts that were whole when it was opened.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.part_file import batches, count_rows, opened
from photon.data.writer import part_name, part_number
from photon.errors import InputError, UsageError
from photon.job.asked import AskedTask, tasks_of
from photon.manifest.rules import RESULT_COLUMNS
from photon.plan.ledger import Ledger, Record
from photon.plan.plan import Plan
from photon.plan.plan_file import read_plan


class RunOutput:
    """``root`` as a manifest's output.dir names it. Raises ``UsageError`` where no run left its results there,
    ``InputError`` where a part is gone that it wrote."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser()
        self.record = _record(self.root / "run.json")
        self.tasks: list[AskedTask] = tasks_of(self.record, str(self.root / "run.json"))
        noted = Ledger.read(self.root).records  # before the parts: a run may be adding to both, in the other order
        named = ((part_number(path.name), path) for path in (self.root / "data").glob("part-*.arrow"))
        self._numbered = sorted((number, path) for number, path in named if number is not None)
        self._parts = [path for _, path in self._numbered]
        self._check_complete(noted)
        if not self._parts:
            ended = self.record.get("state") == "finished"
            why = "its run has ended, and its input had no rows" if ended else "let the run write some rows first"
            raise UsageError(f"{self.root / 'data'} holds no part files; {why}")

    def _check_complete(self, noted: Mapping[int, Record]) -> None:
        """What a run noted as written has to be there: rows must not go missing on the way to somebody else."""
        there = {number for number, _ in self._numbered}
        if gone := [number for number, record in sorted(noted.items()) if record.rows and number not in there]:
            more = f" (and {len(gone) - 1:,} more)" if len(gone) > 1 else ""
            raise InputError(
                f"{self.root / 'data' / part_name(gone[0])}{more} is gone, though the run wrote it; "
                "the run command does its rows again"
            )

    @property
    def is_running(self) -> bool:
        """Whether the record says so; a run that was killed left it saying so."""
        return self.record.get("state") == "running"

    @property
    def id_column(self) -> str | None:
        """The input's column that ``row_id`` was taken from, None where it is the position."""
        given = self.record["manifest"].get("input")
        name = given.get("id") if isinstance(given, Mapping) else None
        return None if name is None else str(name)

    @cached_property
    def schema(self) -> pa.Schema:
        with opened(self._parts[0]) as reader:
            return reader.schema

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The input's columns that the run carried along: neither a result's own nor a task's."""
        ours = {*RESULT_COLUMNS, *(task.name for task in self.tasks)}
        return tuple(name for name in self.schema.names if name not in ours)

    @cached_property
    def _starts(self) -> list[int]:
        """The position of each part's first row, counted over all parts."""
        return [0, *accumulate(map(count_rows, self._parts))]

    @cached_property
    def plan(self) -> Plan | None:
        """What the run worked by; None for an output that was not made by one."""
        return read_plan(self.root)

    @property
    def parts(self) -> Sequence[Path]:
        """The part files, in order."""
        return self._parts

    def batches(self, part: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in order. Raises ``InputError`` for a file that cannot be read."""
        with opened(part, columns) as reader:
            yield from batches(reader)

    def count(self) -> int:
        """The rows of all parts."""
        return self._starts[-1]

    def failed(self) -> array[int]:
        """The positions, counted over all parts, of the rows that failed."""
        found, start = array("q"), 0
        for part in self._parts:
            with opened(part, ["status"]) as reader:
                for batch in batches(reader):
                    statuses = batch.column(0).to_pylist()
                    found.extend(start + n for n, status in enumerate(statuses) if status != "ok")
                    start += batch.num_rows
        return found

    def pick(self, positions: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows at ascending ``positions``, counted over all parts, each with its place in the plan. Only parts
        that hold one are opened. Raises ``InputError`` for a part file that cannot be read or lacks rows."""
        wanted: dict[int, list[int]] = {}
        for position in positions:
            which = bisect_right(self._starts, position) - 1
            wanted.setdefault(which, []).append(position - self._starts[which])
        for which, offsets in wanted.items():
            number, part = self._numbered[which]
            first = self._starts[which] if self.plan is None else self._place(self.plan, number, part)
            for offset, row in zip(offsets, _rows_at(part, offsets, columns), strict=True):
                yield first + offset, row

    @staticmethod
    def _place(plan: Plan, number: int, part: Path) -> int:
        try:
            return plan.chunk(number).place
        except IndexError:
            raise InputError(f"{part} is not in the plan beside it; was it put there? run again with --fresh") from None

    def rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Every row, in order, as plain values. Raises ``InputError`` for a part file that cannot be read."""
        for part in self._parts:
            with opened(part, columns) as reader:
                for batch in batches(reader):
                    for start in range(0, batch.num_rows, 1000):
                        yield from batch.slice(start, 1000).to_pylist()


def _record(path: Path) -> dict[str, Any]:
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; give the output folder of a run, with run.json and data in it")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} holds no run.json; give the output folder of a run") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path} was not written by a run; give the output folder of a run")
    return record


def _rows_at(part: Path, offsets: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a part at ascending ``offsets``."""
    found: list[dict[str, Any]] = []
    with opened(part, columns) as reader:
        start = 0
        for batch in batches(reader):
            while len(found) < len(offsets) and offsets[len(found)] < start + batch.num_rows:
                found += batch.slice(offsets[len(found)] - start, 1).to_pylist()
            start += batch.num_rows
    return found
