"""Failed rows set aside, chunk by chunk: where they stand, why they failed, how a picture that was none begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from photon.data.part_file import batches, opened
from photon.data.writer import PartWriter, part_name
from photon.job.outcome import Outcome

FOLDER = "quarantine"
_SCHEMA = pa.schema(
    {
        "row_id": pa.string(),
        "source": pa.struct({"file": pa.string(), "row_group": pa.int64(), "row": pa.int64()}),
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

    def write(self, chunk: int, outcomes: Sequence[Outcome]) -> None:
        """The failed ones among a chunk's rows take the place of those set aside before. Raises ``OutputError``."""
        failed = [outcome for outcome in outcomes if outcome.failure is not None]
        path = self._folder / part_name(chunk)
        if not failed:
            path.unlink(missing_ok=True)
            return
        before = self._bytes_before(path)
        rows = [_row(outcome, before) for outcome in failed]
        PartWriter(self._folder, _SCHEMA, ipc=self._ipc).write(chunk, rows)

    @staticmethod
    def _bytes_before(path: Path) -> dict[tuple[Any, ...], bytes | None]:
        """What an earlier generation of the chunk kept, by where a row stands."""
        if not path.exists():
            return {}
        with opened(path, ["source", "bytes"]) as reader:
            rows = [row for batch in batches(reader) for row in batch.to_pylist()]
        return {tuple(row["source"].values()): row["bytes"] for row in rows}


def _row(outcome: Outcome, before: dict[tuple[Any, ...], bytes | None]) -> dict[str, Any]:
    cells, failure = outcome.cells, outcome.failure
    assert failure is not None
    kept = failure.sample if failure.sample is not None else before.get(tuple(cells["source"].values()))
    return {name: cells[name] for name in _SCHEMA.names if name != "bytes"} | {"bytes": kept}
