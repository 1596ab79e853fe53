"""The ledger: which chunks are committed, and how they came out. Each shard appends to a file of its own; read, they
are one. What is in it is what is done: a part without a record is no part yet.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from photon.data.disk import blaming, sync_folder
from photon.errors import OutputError

FOLDER = "ledger"


@dataclass(frozen=True, slots=True)
class Making:
    """What decided the answers of a chunk. ``base`` is what all tasks have in common, ``tasks`` each one's fingerprint,
    ``columns`` a digest of the result's schema."""

    id: str
    base: dict[str, Any]
    tasks: dict[str, str]
    columns: str


@dataclass(frozen=True, slots=True)
class Record:
    """One committed chunk. ``generation`` counts its recomputings; ``sha256`` and ``bytes`` are the part's; ``codes``
    counts failed rows by code. ``last``: the source, which did not know its end, ended with this chunk."""

    chunk: int
    generation: int
    rows: int
    ok: int
    found: int
    requests: int
    codes: dict[str, int]
    bytes: int
    sha256: str
    making: str
    last: bool = False

    @property
    def failed(self) -> int:
        return self.rows - self.ok


def part_facts(chunk: int, generation: int, making: str) -> dict[str, object]:
    """What a part says of itself in its schema's metadata: which record is its own."""
    return {"chunk": chunk, "generation": generation, "making": making}


@dataclass(slots=True)
class Ledger:
    """The newest record of each chunk, over all shards. ``lost``: the last generation of chunks without their part."""

    records: dict[int, Record] = field(default_factory=dict)
    makings: dict[str, Making] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> Ledger:
        """Raises ``OutputError`` for a file that cannot be read. A last line that a killed process tore is passed
        over."""
        made = cls()
        folder = root / FOLDER
        for path in sorted(folder.glob("shard-*.jsonl")) if folder.is_dir() else ():
            for data in _lines(path):
                made._take(data)
        return made

    def _take(self, data: Mapping[str, Any]) -> None:
        if "base" in data:
            making = Making(**data)
            self.makings[making.id] = making
            return
        record = Record(**data)
        known = self.records.get(record.chunk)
        if known is None or known.generation <= record.generation:
            self.records[record.chunk] = record

    def add(self, record: Record, making: Making) -> None:
        """Notes what has just been committed."""
        self.records[record.chunk] = record
        self.makings[making.id] = making

    def forget(self, chunk: int) -> None:
        """The part of ``chunk`` is gone; done again it is a newer one, or its old record would count."""
        known = self.records.pop(chunk, None)
        if known is not None:
            self.lost[chunk] = known.generation

    def next_generation(self, chunk: int) -> int:
        """That of the part which is written next."""
        known = self.records.get(chunk)
        return 1 + (self.lost.get(chunk, -1) if known is None else known.generation)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of committed chunks."""

    rows: int
    ok: int
    found: int
    codes: dict[str, int]

    @property
    def failed(self) -> int:
        return self.rows - self.ok

    @classmethod
    def of(cls, records: Iterable[Record]) -> Counts:
        records = list(records)
        codes: Counter[str] = Counter()
        for record in records:
            codes.update(record.codes)
        return cls(sum(r.rows for r in records), sum(r.ok for r in records), sum(r.found for r in records), dict(codes))


class LedgerFile:
    """One shard's file, appended to; its lines last once ``commit`` returns."""

    def __init__(self, root: Path, shard: str) -> None:
        """Makes the file, and cuts off what a killed process left of a line. Raises ``OutputError``."""
        self.path = root / FOLDER / f"shard-{shard}.jsonl"
        with blaming(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what the system refused would be written again by the next line, or by close.
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  until close
            os.truncate(self.path, _whole_length(self.path))
            sync_folder(self.path.parent)
        self._makings: set[str] = {data["id"] for data in _lines(self.path) if "base" in data}

    def commit(self, record: Record, making: Making) -> None:
        """Raises ``OutputError`` where the system refuses; then the record is not there, or torn and passed over."""
        lines = [asdict(record)]
        if making.id not in self._makings:
            lines.insert(0, asdict(making))
        with blaming(self.path):
            self._append("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode())
        self._makings.add(making.id)

    def _append(self, data: bytes) -> None:
        before = os.fstat(self._file.fileno()).st_size
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # a further line behind half of this one would be no line
                os.ftruncate(self._file.fileno(), before)
            raise

    def close(self) -> None:
        with suppress(OSError):  # each line was synced when it was written
            self._file.close()


def _whole_length(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield json.loads(line)
                except ValueError as error:
                    told = f"line {number} of {path} cannot be read ({error})"
                    raise OutputError(f"{told}; restore it, or start over with --fresh") from error
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
