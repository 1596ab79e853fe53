"""A run's output folder, read: its record, and its rows in a stream, of the columns that are wanted alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.files import reading
from photon.errors import InputError, UsageError
from photon.evaluate.asked import AskedTask, tasks_of
from photon.job.rules import RESULT_COLUMNS

_MAGIC = b"ARROW1"  # of the IPC file form; the stream form has none


class RunOutput:
    """``root`` as a manifest's output.dir names it. Raises ``UsageError`` where no run left its results there."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser()
        self.record = _record(self.root / "run.json")
        self.tasks: list[AskedTask] = tasks_of(self.record, str(self.root / "run.json"))
        self._parts = sorted((self.root / "data").glob("part-*.arrow"))
        if not self._parts:
            raise UsageError(f"{self.root / 'data'} holds no part files; let the run write some rows first")

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
