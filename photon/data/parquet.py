"""Rows of Parquet files, local or behind URLs, streamed by row group."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from photon.data.cells import NumberedCells, cells_of
from photon.data.columns import Columns
from photon.data.files import expand, is_remote, open_remote
from photon.data.grouped import GroupedFiles, Groups
from photon.data.unit import Unit

log = logging.getLogger(__name__)

_BATCH_ROWS = 32
_BATCH_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20
_LARGE_GROUP_BYTES = 512 << 20


class ParquetSource(GroupedFiles):
    """A ``Source`` over the Parquet files that ``patterns`` name.

    ``image`` is a column of binary, of {bytes, path} structs or of paths (relative to their file's folder); ``id`` and
    ``columns`` name further columns. Only these are read. ``units`` as in ``GroupedFiles``. Raises ``UsageError`` for a
    pattern that matches nothing and for a missing or unfit column, ``InputError`` for a file that cannot be read.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        image: str,
        id: str | None = None,
        columns: Sequence[str] = (),
        units: Sequence[Unit] | None = None,
    ) -> None:
        self._warned = False
        super().__init__(expand(patterns) if units is None else (), Columns(image, id, tuple(columns)), units)

    @contextmanager
    def _open(self, file: str) -> Iterator[Groups]:
        with ExitStack() as stack:
            source = stack.enter_context(open_remote(file)) if is_remote(file) else file
            # Pre-buffering and whole column chunks in memory: 20 times the memory for a tenth of the time.
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER_BYTES)
            groups = _RowGroups(stack.enter_context(parquet))
            self._warn_once(file, groups)
            yield groups

    def _warn_once(self, file: str, groups: _RowGroups) -> None:
        if not self._warned and (large := groups.large()):
            self._warned = True
            log.warning(
                "%s: row group %d holds %.1f GiB, which is read in slices, and again from its start when a run goes on "
                "inside of it. Smaller row groups are quicker: write the file with row_group_size=100 or so",
                *(file, large[0], large[1] / (1 << 30)),
            )


class _RowGroups:
    def __init__(self, parquet: pq.ParquetFile) -> None:
        self._parquet = parquet
        self.schema: pa.Schema = parquet.schema_arrow

    def sizes(self) -> Sequence[int]:
        metadata = self._parquet.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def weights(self) -> Sequence[int]:
        metadata = self._parquet.metadata
        return [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]

    def large(self) -> tuple[int, int] | None:
        """Number and bytes of the first row group that is too large for comfort."""
        metadata = self._parquet.metadata
        sizes = ((group, metadata.row_group(group).total_byte_size) for group in range(metadata.num_row_groups))
        return next((sized for sized in sizes if sized[1] > _LARGE_GROUP_BYTES), None)

    def cells(self, group: int, columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
        return cells_of(self._batches(group, columns), columns, first)

    def _batches(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        metadata = self._parquet.metadata.row_group(group)
        row_bytes = metadata.total_byte_size // max(1, metadata.num_rows)
        rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, row_bytes)))
        batches: Iterator[pa.RecordBatch] = self._parquet.iter_batches(
            batch_size=rows, row_groups=[group], columns=list(columns), use_threads=False
        )
        return batches
