"""Cells of Arrow batches as Python values, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from photon.data.refused import Unreadable

#: A row's number in its group, and its cells by column name.
NumberedCells: TypeAlias = tuple[int, dict[str, object]]


def cells_of(batches: Iterator[pa.RecordBatch], columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
    """The rows of ``batches``, a whole group, from number ``first`` on. What Python cannot hold (text that is not
    UTF-8, a date after the year 9999) is ``Unreadable``."""
    seen = 0
    for batch in batches:
        arrays = [batch.column(name) for name in columns]
        for n in range(max(0, first - seen), batch.num_rows):
            yield seen + n, {name: _value(array, n) for name, array in zip(columns, arrays, strict=True)}
        seen += batch.num_rows


def _value(array: pa.Array, n: int) -> object:
    try:
        return array[n].as_py()
    except MemoryError:
        raise
    except Exception as error:
        return Unreadable(f"{error} ({type(error).__name__})")
