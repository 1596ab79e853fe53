"""Rows of Arrow IPC files, of either form, and of folders that ``Dataset.save_to_disk`` wrote. Memory-mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from photon.data.cells import NumberedCells, cells_of
from photon.data.columns import Columns
from photon.data.files import expand, is_remote, reading
from photon.data.grouped import GroupedFiles, Groups
from photon.data.unit import Unit
from photon.errors import UsageError

_FILE_MAGIC = b"ARROW1"  # the stream form has none


class ArrowSource(GroupedFiles):
    """A ``Source`` over Arrow files; a record batch counts as a row group.

    ``patterns`` name files of the *file* or the *stream* form, or folders of ``Dataset.save_to_disk``. Columns and
    errors as in ``ParquetSource``.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        image: str,
        id: str | None = None,
        columns: Sequence[str] = (),
        units: Sequence[Unit] | None = None,
    ) -> None:
        names = [patterns] if isinstance(patterns, str) else patterns
        files = expand([file for name in names for file in _saved_files(name)]) if units is None else ()
        super().__init__(files, Columns(image, id, tuple(columns)), units)

    @contextmanager
    def _open(self, file: str) -> Iterator[Groups]:
        with pa.memory_map(file) as mapped:
            yield _Batches(mapped)


def _saved_files(name: str) -> list[str]:
    """The Arrow files of a saved dataset's folder, in order; any other name as it is."""
    if is_remote(name):
        raise UsageError(f"Arrow files are memory-mapped and cannot be read from a URL: download {name!r} first")
    folder = os.path.expanduser(name)
    if not os.path.isdir(folder):
        return [name]
    with reading(folder):
        splits = _json(folder, "dataset_dict.json")
        state = _json(folder, "state.json")
    if splits is not None:
        choices = ", ".join(os.path.join(folder, split) for split in splits.get("splits", ()))
        raise UsageError(f"{folder} holds several splits: name one of {choices}")
    if state is None:
        raise UsageError(f"{folder} was not written by Dataset.save_to_disk: name Arrow files or such a folder")
    if any(key.startswith("_indices") and value for key, value in state.items()):
        # A selection or a shuffle is applied when it is saved; old versions wrote row numbers beside the rows.
        raise UsageError(f"{folder} holds a selection that an old version of datasets saved: load it and save it again")
    return [os.path.join(folder, part["filename"]) for part in state["_data_files"]]


def _json(folder: str, name: str) -> dict[str, Any] | None:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content


class _Batches:
    def __init__(self, mapped: pa.MemoryMappedFile) -> None:
        self._mapped = mapped
        self._is_file = mapped.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        self.schema: pa.Schema = self._reader(None).schema
        self._rest: Iterator[tuple[int, pa.RecordBatch]] | None = None

    def sizes(self) -> Sequence[int]:
        # Compressed batches are decompressed to be counted: then better those of a slim column.
        slim = [field.name for field in self.schema if pat.is_primitive(field.type)][:1]
        return [batch.num_rows for batch in self._all(slim or self.schema.names[:1])]

    def weights(self) -> Sequence[int]:
        return ()

    def cells(self, group: int, columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
        return cells_of(self._batches(group, columns), columns, first)

    def _batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self._is_file:
            yield self._reader(columns).get_batch(group)
            return
        self._rest = self._rest or enumerate(self._all(columns))
        for number, batch in self._rest:  # a stream can only be read on
            if number == group:
                yield batch
                return

    def _all(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        reader = self._reader(columns)
        if self._is_file:
            return (reader.get_batch(n) for n in range(reader.num_record_batches))
        return iter(reader)

    def _reader(self, columns: Sequence[str] | None) -> Any:
        fields = None if columns is None else [self.schema.names.index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        self._mapped.seek(0)
        open_reader = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
        return open_reader(self._mapped, options=options)
