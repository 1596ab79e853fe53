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
    """Plain values all at once, which is much quicker; what may be large one by one, as they are asked for."""
    kind = array.type
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return _bytes(array)
    if pat.is_struct(kind) and 0 < len({field.name for field in kind}) == kind.num_fields:
        return _structs(array)
    if pat.is_primitive(kind) or pat.is_string(kind):
        try:
            return array.to_pylist()  # type: ignore[no-any-return]
        except MemoryError:
            raise
        except Exception:  # one of them cannot be read: which, and why, is found out below
            pass
    return (_value(array, n) for n in range(len(array)))


def _bytes(array: pa.Array) -> Iterator[bytes | None]:
    """Taken from Arrow's own memory: its scalars hold a copy, and their Python value is a second one."""
    _, offsets, data = array.buffers()
    end, size = array.offset + len(array), 4 if pat.is_binary(array.type) else 8
    at = memoryview(offsets)[: size * (end + 1)].cast("i" if size == 4 else "q")
    held = memoryview(data or b"")
    for n, valid in enumerate(_valid(array), array.offset):
        yield bytes(held[at[n] : at[n + 1]]) if valid else None


def _structs(array: pa.Array) -> Iterator[object]:
    names = [field.name for field in array.type]
    for valid, *values in zip(_valid(array), *map(_values, array.flatten()), strict=True):
        bad = next((value for value in values if isinstance(value, Unreadable)), None)
        yield (bad or dict(zip(names, values, strict=True))) if valid else None


def _valid(array: pa.Array) -> list[bool]:
    return array.is_valid().to_pylist() if array.null_count else [True] * len(array)


def _value(array: pa.Array, n: int) -> object:
    try:
        return array[n].as_py()
    except MemoryError:
        raise
    except Exception as error:
        return Unreadable(f"{error} ({type(error).__name__})")
