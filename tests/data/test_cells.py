"""Cells of batches: all at once or one by one, the values are Arrow's own, and what Python cannot hold says so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from photon.data.cells import cells_of
from photon.data.refused import Unreadable

ROWS = 90
NESTED = pa.struct({"at": pa.struct({"time": pa.timestamp("s")})})
#: Of each kind, three values and how many of them Python cannot hold.
KINDS: dict[str, tuple[list[object], pa.DataType, int]] = {
    "integers": ([1, None, 2**64 - 1], pa.uint64(), 0),
    "floats": ([1.5, None, -0.0], pa.float32(), 0),
    "times": ([1, None, 2**62], pa.timestamp("s"), 1),
    "dates": ([1, None, 10**8], pa.date32(), 1),
    "texts": (["a", None, "\u00e9"], pa.string(), 0),
    "long texts": (["a", None, "\u00e9"], pa.large_string(), 0),
    "classes": (["a", None, "a"], pa.dictionary(pa.int8(), pa.string()), 0),
    "nothing": ([None, None, None], pa.null(), 0),
    "lists": ([[1], None, []], pa.list_(pa.int8()), 0),
    "pictures": ([b"a", None, b""], pa.binary(), 0),
    "large pictures": ([b"a", None, b"bc"], pa.large_binary(), 0),
    "no pictures": ([None, None, None], pa.binary(), 0),
    "views": ([b"a", None, b"more than twelve bytes"], pa.binary_view(), 0),
    "structs": ([{"bytes": b"a"}, None, {"bytes": None}], pa.struct({"bytes": pa.binary()}), 0),
    "pictures and paths": (
        [{"bytes": b"a", "path": "b"}, None, {"bytes": None, "path": "c"}],
        pa.struct({"bytes": pa.large_binary(), "path": pa.string()}),
        0,
    ),
    "structs of times": ([{"at": {"time": 1}}, None, {"at": {"time": 2**62}}], NESTED, 1),
    "empty structs": ([{}, None, {}], pa.struct([]), 0),
}
BATCH = pa.table({name: pa.array(values * (ROWS // 3), kind) for name, (values, kind, _) in KINDS.items()})


@pytest.mark.parametrize("first", [0, 1, 31, 32, 33, 89, 90, 100, 179])
def test_values_are_those_of_each_cell_alone(first: int) -> None:
    (batch,) = BATCH.to_batches()
    got = list(cells_of(iter([batch, batch]), batch.schema.names, first))
    assert [number for number, _ in got] == list(range(first, 2 * ROWS))
    for number, cells in got:
        for name, (_, _, bad) in KINDS.items():
            if bad and number % 3 == 2:
                assert isinstance(cells[name], Unreadable)
            else:
                assert cells[name] == batch.column(name)[number % ROWS].as_py()


def test_text_that_is_not_utf8_costs_its_own_row() -> None:
    offsets = pa.array(["abc"] * ROWS).buffers()[1]
    spoilt = bytearray(b"abc" * ROWS)
    spoilt[3 * 40] = 0xFF
    texts = pa.StringArray.from_buffers(ROWS, offsets, pa.py_buffer(bytes(spoilt)))
    got = [cells["text"] for _, cells in cells_of(iter([pa.record_batch({"text": texts})]), ["text"], 0)]
    assert [n for n, text in enumerate(got) if text != "abc"] == [40]
    assert isinstance(got[40], Unreadable)
    assert "utf-8" in got[40].reason
