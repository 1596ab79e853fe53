"""A job's parts as a few large files, Parquet or Arrow, in the order of the plan: rows as they were written.

Nothing is chosen, turned or left out; ``export`` does that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from photon.audit.standing import Standing
from photon.data.part_file import batches, opened
from photon.data.writer import FACTS, digest_of, part_name
from photon.errors import InputError, UsageError
from photon.export.staging import staged
from photon.plan.ledger import Record

log = logging.getLogger(__name__)

Format: TypeAlias = Literal["parquet", "arrow"]
#: Bytes of a file after which the next one begins, and the most that a row group or batch holds in memory.
FILE_BYTES, _GROUP_BYTES = 256_000_000, 64 << 20
_GROUP_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Merged:
    """What was written into the folder ``path``."""

    path: Path
    format: Format
    rows: int
    files: tuple[str, ...]
    bytes: int
    left: str | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "out": str(self.path),
            "format": self.format,
            "rows": self.rows,
            "files": list(self.files),
            "bytes": self.bytes,
            "left": self.left,
        }

    def text(self) -> str:
        """What a person is told."""
        files = f"{len(self.files):,} {'file' if len(self.files) == 1 else 'files'}"
        partly = "" if self.left is None else f"\nthis is not all of the job: {self.left}"
        return f"wrote {self.rows:,} rows into {self.path}: {files}, {self.bytes / 1e6:,.1f} MB{partly}"


def merge(
    root: Path, out: Path, form: str = "parquet", *, rows_per_file: int | None = None, partial: bool = False
) -> Merged:
    """Writes all rows of the job in ``root`` into a new folder ``out``, whole or not at all. A file is full with
    ``rows_per_file`` rows, by default with 256 MB. ``partial``: what is there of a job that is not finished.

    Raises ``UsageError`` for a job that is not finished or a wrong option, ``InputError`` for a part that is not as it
    was written, ``OutputError`` where ``out`` is taken or cannot be written.
    """
    if form not in get_args(Format):
        raise UsageError(f"results are merged into {' or '.join(get_args(Format))}, not {form!r}; correct --format")
    kind: Format = "arrow" if form == "arrow" else "parquet"
    if rows_per_file is not None and rows_per_file < 1:
        raise UsageError(f"a file holds at least one row, not {rows_per_file}; correct --rows-per-file")
    standing = Standing.read(root, units=False)
    left = standing.left
    if left is not None and not partial:
        raise UsageError(f"{standing.root} is not finished: {left}; finish it, or take what is there with --partial")
    if not standing.records:
        raise UsageError(f"{standing.root} has no rows to merge; run the job first")
    with staged(out, standing.root, "merged result", is_file=False) as beside:
        files = _Files(beside, kind, rows_per_file)
        try:
            for record in standing.records:
                files.add(_part(standing.root, record))
            files.finish()
        finally:
            files.close()
        names = sorted(path.name for path in beside.iterdir())
        size = sum((beside / name).stat().st_size for name in names)
    return Merged(out, kind, files.rows, tuple(names), size, left)


def _part(root: Path, record: Record) -> Iterator[pa.RecordBatch]:
    """The rows of a part, which is looked at first: a merged file has no digests to find damage by."""
    path = root / "data" / part_name(record.chunk)
    advice = f"photon-batch verify {root} tells more"
    try:
        is_whole = path.stat().st_size == record.bytes and digest_of(path) == record.sha256
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; {advice}") from error
    if not is_whole:
        raise InputError(f"{path} is not as it was written; {advice}")
    with opened(path) as reader:
        yield from batches(reader)


class _Files:
    """Files that fill up one after the other."""

    def __init__(self, folder: Path, form: Format, rows_per_file: int | None) -> None:
        self._folder, self._form, self._most = folder, form, rows_per_file
        self._schema: pa.Schema | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._file: Any = None
        self._writer: Any = None
        self._files = self._in_file = self._group_rows = self._group_bytes = 0
        self.rows = 0

    def add(self, part: Iterator[pa.RecordBatch]) -> None:
        """The rows of the next part. Raises ``InputError`` where its columns are others than those before."""
        for batch in part:
            metadata = {key: value for key, value in (batch.schema.metadata or {}).items() if key != FACTS}
            batch = batch.replace_schema_metadata(metadata)
            if self._schema is None:
                self._schema = batch.schema
            elif not batch.schema.equals(self._schema, check_metadata=True):
                raise InputError(
                    "the parts were made by different manifests and have different columns; run the job to its end"
                )
            while batch.num_rows:
                count = min(self._room(), batch.num_rows)
                self._take(batch.slice(0, count))
                batch = batch.slice(count)

    def finish(self) -> None:
        self._flush()
        self._end()

    def close(self) -> None:
        """Lets go of a file that is not finished."""
        if self._file is not None:
            self._file.close()

    def _room(self) -> int:
        """Rows that the group and the file take."""
        room = _GROUP_ROWS - self._group_rows
        return room if self._most is None else min(room, self._most - self._in_file)

    def _take(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._group_rows += batch.num_rows
        self._group_bytes += batch.nbytes
        self._in_file += batch.num_rows
        self.rows += batch.num_rows
        is_full = self._in_file == self._most
        if is_full or self._room() == 0 or self._group_bytes >= _GROUP_BYTES:
            self._flush()
            if is_full or (self._most is None and self._file.tell() >= FILE_BYTES):
                self._end()

    def _flush(self) -> None:
        """Writes what waits as one row group or batch."""
        if not self._waiting:
            return
        if self._writer is None:
            suffix = "arrow" if self._form == "arrow" else "parquet"
            self._file = (self._folder / f"part-{self._files:05d}.{suffix}").open("xb")
            self._writer = self._opened()
            self._files += 1
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        if self._form == "arrow":
            self._writer.write_table(table)
        else:
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting = []
        self._group_rows = self._group_bytes = 0

    def _opened(self) -> Any:
        if self._form == "arrow":
            return pa.ipc.new_file(self._file, self._schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        return pq.ParquetWriter(self._file, self._schema, compression="zstd")

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._file.close()
            log.debug("%s is full, %s rows so far", Path(self._file.name).name, f"{self.rows:,}")
        self._file = self._writer = None
        self._in_file = 0
