"""A part file, opened: either form of Arrow's, mapped into memory, all columns or those that are wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from photon.data.files import reading
from photon.data.writer import FACTS

_MAGIC = b"ARROW1"  # of the IPC file form; the stream form has none


@contextmanager
def opened(part: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """A reader. Whatever goes wrong with the file inside is an ``InputError`` that names it."""
    with reading(str(part)), pa.memory_map(str(part)) as mapped:
        is_file = mapped.read(len(_MAGIC)) == _MAGIC
        mapped.seek(0)
        how = pa.ipc.open_file if is_file else pa.ipc.open_stream
        reader = how(mapped)
        if columns is not None:
            fields = [reader.schema.names.index(name) for name in columns]
            mapped.seek(0)
            reader = how(mapped, options=pa.ipc.IpcReadOptions(included_fields=fields))
        yield reader


def batches(reader: Any) -> Iterator[Any]:
    if isinstance(reader, pa.RecordBatchStreamReader):
        yield from reader
    else:
        yield from (reader.get_batch(n) for n in range(reader.num_record_batches))


def facts_of(schema: pa.Schema) -> dict[str, Any]:
    """What the writer noted of the part; empty if nothing."""
    try:
        facts = json.loads((schema.metadata or {})[FACTS])
    except (KeyError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def count_rows(part: Path) -> int:
    with opened(part, ["status"]) as reader:
        return sum(batch.num_rows for batch in batches(reader))
