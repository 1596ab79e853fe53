"""A Parquet file that grows row group by row group, and the features that ``datasets`` finds in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_GROUP_BYTES = 64 << 20


def with_features(schema: pa.Schema, features: Mapping[str, object]) -> pa.Schema:
    """``features`` in their JSON form, of some of the columns; ``datasets`` derives the others."""
    named = {name: features[name] for name in schema.names if name in features}
    return schema.with_metadata({"huggingface": json.dumps({"info": {"features": named}})} if named else None)


class Table:
    """``group_rows``: a row group has no more; one with pictures has fewer, to be read in little memory."""

    def __init__(self, path: Path, schema: pa.Schema, group_rows: int) -> None:
        self._schema = schema
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")
        self._group_rows = group_rows
        self._rows: list[Mapping[str, Any]] = []
        self._weight = 0

    def add(self, row: Mapping[str, Any], weight: int = 0) -> None:
        """``weight``: the bytes of its pictures."""
        self._rows.append(row)
        self._weight += weight
        if len(self._rows) >= self._group_rows or self._weight >= _GROUP_BYTES:
            self._flush()

    @property
    def bytes(self) -> int:
        """What is written and what waits, about."""
        return self._file.tell() + self._weight

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows, self._weight = [], 0
