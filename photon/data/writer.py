"""Part files: the result rows of one chunk, whole on disk under their name or not there at all.

The ledger and the removal of what a killed process left (hidden ``.*.tmp`` files) are the job's. A part that is written
again takes the place of the old one in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from photon.data.disk import blaming, sync_folder

# Arrow's 32-bit offsets end at 2 GiB a column, and readers take a batch at a time.
_BATCH_BYTES, _BATCH_ROWS = 64 << 20, 4096
#: The key of a part's own facts in its schema's metadata.
FACTS = b"photon"
_PART = re.compile(r"part-(\d+)\.arrow")


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part file: its path, its number of rows, its size in bytes, its digest in hex."""

    path: Path
    rows: int
    bytes: int
    sha256: str = ""


class PartWriter:
    """Writes the part files of one job, Arrow IPC with zstd. The same rows give the same bytes."""

    def __init__(self, folder: Path, schema: pa.Schema, *, ipc: Literal["file", "stream"] = "file") -> None:
        """Makes ``folder``. ``ipc``: "file" for ``pyarrow.dataset``, "stream" for ``Dataset.from_file``."""
        if ipc not in ("file", "stream"):
            raise ValueError(f"ipc must be file or stream, not {ipc!r}")
        self._folder = Path(folder)
        self._schema = schema
        self._open = pa.ipc.new_file if ipc == "file" else pa.ipc.new_stream
        with blaming(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        # At the first conversion pyarrow imports pandas, 49 MB: before the run, not under it on the writer's thread.
        pa.RecordBatch.from_pylist([], schema=schema)

    def write(
        self, chunk: int, rows: Sequence[Mapping[str, object]], facts: Mapping[str, object] | None = None
    ) -> Part:
        """Write ``rows`` (cells by column name; a missing one is null) as ``part-{chunk:06d}.arrow``, for good.

        ``facts`` go into the schema's metadata, as JSON under ``photon``.
        When it returns, the part outlives a power cut; when it raises, there is no part. Raises ``OutputError`` where
        the system refuses, ``ValueError`` or ``TypeError`` for rows that do not fit the schema.
        """
        if chunk < 0:
            raise ValueError(f"chunk must not be negative, but is {chunk}")
        path = self._folder / part_name(chunk)
        temporary = self._folder / f".{path.name}.{uuid.uuid4().hex[:12]}.tmp"
        with blaming(path):
            try:
                self._write(temporary, rows, facts)
                size, digest = temporary.stat().st_size, digest_of(temporary)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._sync_folder(path)
        return Part(path, len(rows), size, digest)

    def _write(self, path: Path, rows: Sequence[Mapping[str, object]], facts: Mapping[str, object] | None) -> None:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        schema = self._schema
        if facts is not None:
            schema = schema.with_metadata(
                {**(schema.metadata or {}), FACTS: json.dumps(facts, sort_keys=True).encode()}
            )
        with open(path, "xb") as file:
            with self._open(file, schema, options=options) as writer:
                for batch in self._batches(rows):
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))
            file.flush()
            os.fsync(file.fileno())

    def _batches(self, rows: Sequence[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
        names = set(self._schema.names)
        for n, row in enumerate(rows):
            if not names.issuperset(row):
                unknown = ", ".join(sorted(row.keys() - names))
                raise ValueError(f"row {n} has columns that the schema lacks: {unknown}")
        for start in range(0, len(rows), _BATCH_ROWS):
            yield from self._halved(rows[start : start + _BATCH_ROWS])

    def _halved(self, rows: Sequence[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
        """One batch or, where that is too large, its halves."""
        try:
            batch = pa.RecordBatch.from_pylist(rows, schema=self._schema)
        except pa.ArrowCapacityError:
            if len(rows) == 1:
                raise
            batch = None
        if batch is not None and (len(rows) == 1 or batch.nbytes <= _BATCH_BYTES):
            yield batch
            return
        del batch
        middle = len(rows) // 2
        yield from self._halved(rows[:middle])
        yield from self._halved(rows[middle:])

    def _sync_folder(self, path: Path) -> None:
        """Make the new name last. Where that fails, take the name back."""
        try:
            sync_folder(self._folder)
        except OSError:
            path.unlink(missing_ok=True)
            raise


def part_name(chunk: int) -> str:
    return f"part-{chunk:06d}.arrow"


def part_number(name: str) -> int | None:
    """The chunk of a part's name; None for any other."""
    found = _PART.fullmatch(name)
    return int(found[1]) if found else None


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
