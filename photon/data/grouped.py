"""Rows of files that are made of groups: Parquet's row groups, Arrow's batches, a tar as one group."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from photon.data.cells import NumberedCells
from photon.data.columns import Columns
from photon.data.files import is_remote, reading
from photon.data.folder import shown_name
from photon.data.row import Row, RowRef
from photon.data.unit import Unit, changed, glance, stamp_of
from photon.errors import InputError, UsageError


class Groups(Protocol):
    """One open file."""

    schema: pa.Schema
    """All columns."""

    def sizes(self) -> Sequence[int]:
        """Rows per group, without reading them where the format allows."""

    def weights(self) -> Sequence[int]:
        """Bytes per group, or nothing where the format does not say."""

    def cells(self, group: int, columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
        """The rows of a group from number ``first`` on, lazily, in bounded memory. A cell that cannot be read is
        ``Unreadable``. Groups are asked for in ascending order."""


class GroupedFiles:
    """A ``Source`` over ``files``, in their order. The formats differ in ``_open``.

    Files are opened when their rows or sizes are first asked for, except the first, whose schema counts for all.
    """

    def __init__(self, files: Sequence[str], columns: Columns, units: Sequence[Unit] | None = None) -> None:
        """``units`` stand in for ``files`` and tell their sizes, so that none has to be opened to be passed over; one
        that is gone or has changed is missed when it is read, by ``InputError`` or ``UsageError``, which are raised
        about the first file here."""
        self._files = list(files) if units is None else [unit.name for unit in units]
        self._columns = columns
        self._sizes: dict[str, tuple[int, ...]] = {}
        self._ends: list[int] = []  # the index after the last row of each file, as far as sizes are known
        self._schema: pa.Schema | None = None
        self._planned = {unit.name: unit for unit in units or ()}
        self._know(self._planned.values())
        _check_names(self._files)
        first = self._files[0]
        if units is not None:
            first = next((file for file in self._files if is_remote(file) or os.path.exists(file)), first)
        with reading(first), self._open(first) as groups:
            self._check(first, groups)

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

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        """Every file is opened, but for those that are as they were when ``known``. Raises ``InputError`` for one that
        cannot be read."""
        made = [self._unit(file, (known or {}).get(file)) for file in self._files]
        self._know(made)
        return made

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        stop = float("inf") if limit is None else start + limit
        number, index = self._find(start)  # the files before are not even opened
        for file in map(self._files.__getitem__, range(number, len(self._files))):
            if max(index, start) >= stop:
                return
            for row in self._rows_of(file, index, start):
                yield row
                if row.index + 1 >= stop:  # not one row further: a sample does not depend on what it leaves out
                    return
            index += sum(self._sizes[file])

    def _know(self, units: Iterable[Unit]) -> None:
        self._sizes.update((unit.name, unit.groups) for unit in units if unit.groups is not None)
        self._ends.clear()

    def _find(self, index: int) -> tuple[int, int]:
        """The number of the file that holds row ``index``, or of the first one whose size is not known, and the index
        of its first row."""
        ends = self._ends
        while len(ends) < len(self._files) and (known := self._sizes.get(self._files[len(ends)])) is not None:
            ends.append((ends[-1] if ends else 0) + sum(known))
        number = bisect_right(ends, index)
        return number, ends[number - 1] if number else 0

    def _unit(self, file: str, known: Unit | None) -> Unit:
        if known is not None and self._is_untouched(file, known):
            return known
        with reading(file), self._open(file) as groups:
            self._columns.check(groups.schema, file, self._schema)
            sizes = self._sizes[file] = tuple(groups.sizes())
            weights = tuple(groups.weights())
        with reading(file):
            return Unit(file, sizes, weights, None if is_remote(file) else stamp_of(file))

    @staticmethod
    def _is_untouched(file: str, known: Unit) -> bool:
        if known.stamp is None:  # its name holds its revision
            return True
        with reading(file):
            return not is_remote(file) and known.stamp.same_as(glance(file))

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
        with reading(file):  # what our caller does with a row is not raised here, and is not the file's fault
            for numbered in groups.cells(group, self._columns.needed, first):
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
        if file in self._planned:
            self._check_planned(self._planned[file], groups)

    def _check_planned(self, planned: Unit, groups: Groups) -> None:
        """A file may have grown since: that is for the next plan to see, and the rows we read are where they were."""
        file = planned.name
        if planned.stamp is None:
            if tuple(groups.sizes())[: len(self._sizes[file])] != self._sizes[file]:
                raise UsageError(f"{file} does not hold the rows any more that it was planned with; put it back")
            del self._planned[file]  # to look once is all that can be done
            return
        now = glance(file)
        if planned.stamp.same_as(now):
            return
        if planned.stamp.size == now.size:
            now = stamp_of(file)
        unit = Unit(file, tuple(groups.sizes()), tuple(groups.weights()), now)
        if not (unit.is_same_as(planned) or unit.grew_from(planned)):
            raise changed([planned])
        self._planned[file] = replace(planned, stamp=now)


def _check_names(files: Iterable[str]) -> None:
    """Arrow, which reads the files and writes their names down, knows no name that is not UTF-8."""
    for file in files:
        if not file.isascii() and (shown := shown_name(file)) != file:
            raise UsageError(f"the name of {shown} is not UTF-8; rename the file")
