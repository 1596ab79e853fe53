"""Failed rows set aside, chunk by chunk: where they stand, why they failed, how a picture that was none begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from photon.data.part_file import batches, facts_of, opened
from photon.data.schema import SOURCE
from photon.data.writer import PartWriter, part_name
from photon.job.outcome import Cells, Outcome

FOLDER = "quarantine"
_SCHEMA = pa.schema(
    {
        "row_id": pa.string(),
        "source": SOURCE,
        "status": pa.string(),
        "error_code": pa.string(),
        "error_message": pa.string(),
        "bytes": pa.large_binary(),
        "job_id": pa.string(),
    }
)


class Quarantine:
    """``bytes`` are at most the first MiB of an encoded picture, null where it was readable or there was none."""

    def __init__(self, root: Path, ipc: Literal["file", "stream"]) -> None:
        self._folder = root / FOLDER
        self._ipc = ipc

    def write(self, chunk: int, outcomes: Sequence[Outcome], facts: Mapping[str, object]) -> None:
        """The failed ones among a chunk's rows take the place of those set aside before. ``facts`` are its part's.
        Raises ``OutputError``."""
        samples = [(o.cells, o.failure.sample) for o in outcomes if o.failure is not None]
        self._put(chunk, samples, facts)

    def agrees(self, chunk: int, failed: int, facts: Mapping[str, object]) -> bool:
        """Whether what is set aside is that of a part with those ``facts``, of whose rows so many failed."""
        path = self._folder / part_name(chunk)
        if not path.exists():
            return not failed
        with opened(path) as reader:
            return bool(failed) and facts_of(reader.schema) == facts

    def restore(self, chunk: int, rows: Sequence[Cells], facts: Mapping[str, object]) -> None:
        """Sets aside again what failed of a part's ``rows``, with the bytes that are still there."""
        self._put(chunk, [(row, None) for row in rows if row["status"] != "ok"], facts)

    def _put(self, chunk: int, failed: Sequence[tuple[Cells, bytes | None]], facts: Mapping[str, object]) -> None:
        path = self._folder / part_name(chunk)
        if not failed:
            path.unlink(missing_ok=True)
            return
        before = self._bytes_before(path)
        rows = [_row(cells, sample, before) for cells, sample in failed]
        PartWriter(self._folder, _SCHEMA, ipc=self._ipc).write(chunk, rows, facts)

    @staticmethod
    def _bytes_before(path: Path) -> dict[tuple[Any, ...], bytes | None]:
        """What an earlier generation of the chunk kept, by where a row stands."""
        if not path.exists():
            return {}
        with opened(path, ["source", "bytes"]) as reader:
            rows = [row for batch in batches(reader) for row in batch.to_pylist()]
        return {tuple(row["source"].values()): row["bytes"] for row in rows}


def _row(cells: Cells, sample: bytes | None, before: Mapping[tuple[Any, ...], bytes | None]) -> dict[str, Any]:
    kept = sample if sample is not None else before.get(tuple(cells["source"].values()))
    return {name: cells[name] for name in _SCHEMA.names if name != "bytes"} | {"bytes": kept}
