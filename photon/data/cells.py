"""Cells of Arrow batches as Python values, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from photon.data.refused import Unreadable

#: A row's number in its group, and its cells by column name.
NumberedCells: TypeAlias = tuple[int, dict[str, object]]

_AT_ONCE = 32


def cells_of(batches: Iterator[pa.RecordBatch], columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
    """The rows of ``batches``, a whole group, from number ``first`` on. What Python cannot hold (text that is not
    UTF-8, a date after the year 9999) is ``Unreadable``."""
    seen = 0
    for batch in batches:
        arrays = [batch.column(name) for name in columns]
        for start in range(max(0, first - seen), batch.num_rows, _AT_ONCE):
            values = [_values(array.slice(start, _AT_ONCE)) for array in arrays]
            for n, row in enumerate(zip(*values, strict=True), seen + start):
                yield n, dict(zip(columns, row, strict=True))
        seen += batch.num_rows


def _values(array: pa.Array) -> Iterable[object]:
    """Plain values all at once, which is much quicker; pictures one by one, as they are asked for."""
    if pat.is_primitive(array.type) or pat.is_string(array.type):
        try:
            return array.to_pylist()  # type: ignore[no-any-return]
        except MemoryError:
            raise
        except Exception:  # one of them cannot be read: which, and why, is found out below
            pass
    return (_value(array, n) for n in range(len(array)))


def _value(array: pa.Array, n: int) -> object:
    try:
        return array[n].as_py()
    except MemoryError:
        raise
    except Exception as error:
        return Unreadable(f"{error} ({type(error).__name__})")
