"""A run's output folder, read: its record, and its rows, in a stream or here and there, of the columns that are wanted.

A run may be going on: what is read then are the parts that were whole when it was opened.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.files import reading
from photon.errors import InputError, UsageError
from photon.job.asked import AskedTask, tasks_of
from photon.manifest.rules import RESULT_COLUMNS

_PART = re.compile(r"part-(\d+)\.arrow")
_MAGIC = b"ARROW1"  # of the IPC file form; the stream form has none


class RunOutput:
    """``root`` as a manifest's output.dir names it. Raises ``UsageError`` where no run left its results there."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser()
        self.record = _record(self.root / "run.json")
        self.tasks: list[AskedTask] = tasks_of(self.record, str(self.root / "run.json"))
        named = ((_PART.fullmatch(path.name), path) for path in (self.root / "data").glob("part-*.arrow"))
        self._numbered = sorted((int(found[1]), path) for found, path in named if found)
        self._parts = [path for _, path in self._numbered]
        if not self._parts:
            raise UsageError(f"{self.root / 'data'} holds no part files; let the run write some rows first")

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
        with _opened(self._parts[0]) as reader:
            return reader.schema

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The input's columns that the run carried along: neither a result's own nor a task's."""
        ours = {*RESULT_COLUMNS, *(task.name for task in self.tasks)}
        return tuple(name for name in self.schema.names if name not in ours)

    @cached_property
    def chunk_rows(self) -> int:
        """Rows of every part but the last: as many as the manifest says or, where it says auto, as the first holds."""
        given = self.record["manifest"].get("output")
        size = given.get("chunk_rows") if isinstance(given, Mapping) else None
        return size if isinstance(size, int) and size > 0 else _count(self._parts[0])

    def count(self) -> int:
        """The rows of all parts; only the last part is looked into, since no other can be short."""
        return (len(self._parts) - 1) * self.chunk_rows + _count(self._parts[-1])

    def failed(self) -> array[int]:
        """The positions, counted over all parts, of the rows that failed."""
        found, start = array("q"), 0
        for part in self._parts:
            with _opened(part, ["status"]) as reader:
                for batch in _batches(reader):
                    statuses = batch.column(0).to_pylist()
                    found.extend(start + n for n, status in enumerate(statuses) if status != "ok")
                    start += batch.num_rows
        return found

    def pick(self, positions: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows at ascending ``positions``, counted over all parts, each with its index in the input. Only parts
        that hold one are opened. Raises ``InputError`` for a part file that cannot be read or lacks rows."""
        wanted: dict[int, list[int]] = {}
        for position in positions:
            wanted.setdefault(position // self.chunk_rows, []).append(position % self.chunk_rows)
        for place, offsets in wanted.items():
            number, part = self._numbered[place]
            for offset, row in zip(offsets, _rows_at(part, offsets, columns), strict=True):
                yield number * self.chunk_rows + offset, row

    def rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Every row, in order, as plain values. Raises ``InputError`` for a part file that cannot be read."""
        for part in self._parts:
            with _opened(part, columns) as reader:
                for batch in _batches(reader):
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


@contextmanager
def _opened(part: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    with reading(str(part)), pa.memory_map(str(part)) as mapped:
        is_file = mapped.read(len(_MAGIC)) == _MAGIC
        mapped.seek(0)
        opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
        reader = opened(mapped)
        if columns is not None:
            fields = [reader.schema.names.index(name) for name in columns]
            mapped.seek(0)
            reader = opened(mapped, options=pa.ipc.IpcReadOptions(included_fields=fields))
        yield reader


def _batches(reader: Any) -> Iterator[Any]:
    if isinstance(reader, pa.RecordBatchStreamReader):
        yield from reader
    else:
        yield from (reader.get_batch(n) for n in range(reader.num_record_batches))


def _count(part: Path) -> int:
    with _opened(part, ["status"]) as reader:
        return sum(batch.num_rows for batch in _batches(reader))


def _rows_at(part: Path, offsets: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a part at ascending ``offsets``."""
    found: list[dict[str, Any]] = []
    with _opened(part, columns) as reader:
        start = 0
        for batch in _batches(reader):
            while len(found) < len(offsets) and offsets[len(found)] < start + batch.num_rows:
                found += batch.slice(offsets[len(found)] - start, 1).to_pylist()
            start += batch.num_rows
    if len(found) < len(offsets):
        raise InputError(f"{part} holds {start} rows and should hold more; was it replaced? run again with --fresh")
    return found
