"""Part files: the result rows of one chunk, whole on disk under their name or not there at all.

The ledger, generations of a part and the removal of what a killed process left (hidden ``.*.tmp`` files) are the job's.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from photon.errors import OutputError

# Arrow's 32-bit offsets end at 2 GiB a column, and readers take a batch at a time.
_BATCH_BYTES = 64 << 20
_ADVICE = {
    errno.ENOSPC: "the disk is full: free space and run again, nothing is lost",
    errno.EDQUOT: "the quota is used up: free space and run again, nothing is lost",
    errno.EFBIG: "the file is too large for the file system or the process limit: write smaller chunks",
    errno.EACCES: "no permission: choose another output folder or change its owner",
    errno.EPERM: "no permission: choose another output folder or change its owner",
    errno.EROFS: "the file system is read-only: choose another output folder",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part file: its path, its number of rows, its size in bytes."""

    path: Path
    rows: int
    bytes: int


class PartWriter:
    """Writes the part files of one job, Arrow IPC with zstd. The same rows give the same bytes."""

    def __init__(self, folder: Path, schema: pa.Schema, *, ipc: Literal["file", "stream"] = "file") -> None:
        """Makes ``folder``. ``ipc``: "file" for ``pyarrow.dataset``, "stream" for ``Dataset.from_file``."""
        if ipc not in ("file", "stream"):
            raise ValueError(f"ipc must be file or stream, not {ipc!r}")
        self._folder = Path(folder)
        self._schema = schema
        self._open = pa.ipc.new_file if ipc == "file" else pa.ipc.new_stream
        with _blaming(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        # At the first conversion pyarrow imports pandas, 49 MB: before the run, not under it on the writer's thread.
        pa.RecordBatch.from_pylist([], schema=schema)

    def write(self, chunk: int, rows: Sequence[Mapping[str, object]]) -> Part:
        """Write ``rows`` (cells by column name; a missing one is null) as ``part-{chunk:06d}.arrow``, for good.

        When it returns, the part outlives a power cut; when it raises, there is no part. Raises ``OutputError`` where
        the system refuses, ``ValueError`` or ``TypeError`` for rows that do not fit the schema.
        """
        if chunk < 0:
            raise ValueError(f"chunk must not be negative, but is {chunk}")
        path = self._folder / f"part-{chunk:06d}.arrow"
        temporary = self._folder / f".{path.name}.{uuid.uuid4().hex[:12]}.tmp"
        with _blaming(path):
            try:
                self._write(temporary, rows)
                size = temporary.stat().st_size
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._sync_folder(path)
        return Part(path, len(rows), size)

    def _write(self, path: Path, rows: Sequence[Mapping[str, object]]) -> None:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with open(path, "xb") as file:
            with self._open(file, self._schema, options=options) as writer:
                for batch in self._batches(rows):
                    writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())

    def _batches(self, rows: Sequence[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
        names = set(self._schema.names)
        start = size = 0
        for n, row in enumerate(rows):
            if unknown := row.keys() - names:
                raise ValueError(f"row {n} has columns that the schema lacks: {', '.join(sorted(unknown))}")
            weight = _weigh(row)
            if n > start and size + weight > _BATCH_BYTES:
                yield pa.RecordBatch.from_pylist(rows[start:n], schema=self._schema)
                start, size = n, 0
            size += weight
        if start < len(rows):
            yield pa.RecordBatch.from_pylist(rows[start:], schema=self._schema)

    def _sync_folder(self, path: Path) -> None:
        """Make the new name last. Where that fails, take the name back."""
        try:
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such thing
                return
            path.unlink(missing_ok=True)
            raise


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "check the output folder")
        raise OutputError(f"cannot write {path}: {error.strerror or error}; {advice}") from error


def _weigh(value: object) -> int:
    """About how many bytes a cell takes in Arrow."""
    if isinstance(value, (str, bytes)):
        return len(value) + 4
    if isinstance(value, Mapping):
        return sum(map(_weigh, value.values()))
    if isinstance(value, (list, tuple)):
        return 4 + sum(map(_weigh, value))
    return 8
