"""Rows of files that are made of groups: Parquet's row groups, Arrow's batches, a tar as one group."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

import pyarrow as pa

from photon.data.cells import NumberedCells
from photon.data.columns import Columns
from photon.data.files import is_remote, reading
from photon.data.row import Row, RowRef
from photon.errors import InputError


class Groups(Protocol):
    """One open file."""

    schema: pa.Schema
    """All columns."""

    def sizes(self) -> Sequence[int]:
        """Rows per group, without reading them where the format allows."""

    def cells(self, group: int, columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
        """The rows of a group from number ``first`` on, lazily, in bounded memory. A cell that cannot be read is
        ``Unreadable``. Groups are asked for in ascending order."""


class GroupedFiles:
    """A ``Source`` over ``files``, in their order. The formats differ in ``_open``.

    Files are opened when their rows or sizes are first asked for, except the first, whose schema counts for all.
    """

    def __init__(self, files: Sequence[str], columns: Columns) -> None:
        """Raises ``InputError`` or ``UsageError`` about the first file."""
        self._files = list(files)
        self._columns = columns
        self._sizes: dict[str, tuple[int, ...]] = {}
        self._schema: pa.Schema | None = None
        with reading(self._files[0]), self._open(self._files[0]) as groups:
            self._check(self._files[0], groups)

    def _open(self, file: str) -> AbstractContextManager[Groups]:
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def files(self) -> Sequence[str]:
        return [file for file in self._files if not is_remote(file)]

    def count(self) -> int:
        for file in self._files:
            if file not in self._sizes:
                with reading(file), self._open(file) as groups:
                    self._check(file, groups)
        return sum(sum(self._sizes[file]) for file in self._files)

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        stop = float("inf") if limit is None else start + limit
        index = 0  # of the first row of what comes next
        for file in self._files:
            if max(index, start) >= stop:
                return
            known = self._sizes.get(file)
            if known is not None and index + sum(known) <= start:  # not even opened
                index += sum(known)
                continue
            for row in self._rows_of(file, index, start):
                yield row
                if row.index + 1 >= stop:  # not one row further: a sample does not depend on what it leaves out
                    return
            index += sum(self._sizes[file])

    def _rows_of(self, file: str, index: int, start: int) -> Iterator[Row]:
        """The rows of a file whose first row has ``index``, from ``start`` on."""
        folder = os.path.dirname(file)
        with ExitStack() as stack:
            with reading(file):
                groups = stack.enter_context(self._open(file))
                self._check(file, groups)
            for group, size in enumerate(self._sizes[file]):
                if index + size > start:
                    for n, cells in self._cells(file, groups, group, max(0, start - index)):
                        yield self._columns.row(index + n, RowRef(file, group, n), cells, folder)
                index += size

    def _cells(self, file: str, groups: Groups, group: int, first: int) -> Iterator[NumberedCells]:
        seen, size = first, self._sizes[file][group]
        with reading(file):
            cells = groups.cells(group, self._columns.needed, first)
        while True:
            with reading(file):  # around the reading alone: what our caller does with a row is not the file's fault
                numbered = next(cells, None)
            if numbered is None:
                break
            yield numbered
            seen = numbered[0] + 1
        if seen != size:
            raise InputError(f"{file} promises {size} rows in group {group} and has {seen}")

    def _check(self, file: str, groups: Groups) -> None:
        self._columns.check(groups.schema, file, self._schema)
        if self._schema is None:
            self._schema = groups.schema
        if file not in self._sizes:
            self._sizes[file] = tuple(groups.sizes())
