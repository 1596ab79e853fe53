"""A shard's ledger on a disk that refuses: no line is half there, none comes twice, and closing says nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from photon.errors import OutputError
from photon.plan.ledger import Ledger, LedgerFile, Making, Record

MAKING = Making("m", {"model": "x"}, {"cap": "1f"}, "2e")


def record(chunk: int) -> Record:
    return Record(chunk, 0, 4, 4, 0, 4, {}, 100, "00", "m")


class Disk:
    """In place of an open file: takes ``room`` bytes in all, ``step`` at a time."""

    def __init__(self, file: Any, room: int, step: int = 1 << 20) -> None:
        self.file, self.room, self.step = file, room, step

    def fileno(self) -> int:
        number: int = self.file.fileno()
        return number

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written: int = self.file.write(data[: min(self.room, self.step)])
        self.room -= written
        return written

    def close(self) -> None:
        self.file.close()
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_full_disk_costs_the_record_alone(tmp_path: Path) -> None:
    ledger = LedgerFile(tmp_path, "0000-of-0001")
    ledger.commit(record(0), MAKING)
    before = ledger.path.read_bytes()
    honest = ledger._file
    ledger._file = Disk(honest, room=50)  # type: ignore[assignment]
    with pytest.raises(
        OutputError, match=r"shard-0000-of-0001\.jsonl: No space left on device; .* run again"
    ) as caught:
        ledger.commit(record(1), MAKING)
    assert caught.value.exit_code == 5
    assert ledger.path.read_bytes() == before, "half a line would spoil the next one"
    ledger._file = honest
    ledger.commit(record(2), MAKING)
    ledger.close()
    assert sorted(Ledger.read(tmp_path).records) == [0, 2], "what was refused is not written by a later line or close"


def test_short_writes_and_a_close_that_fails(tmp_path: Path) -> None:
    ledger = LedgerFile(tmp_path, "0000-of-0001")
    ledger._file = Disk(ledger._file, room=1 << 20, step=7)  # type: ignore[assignment]
    ledger.commit(record(0), MAKING)
    ledger.commit(record(1), MAKING)
    ledger.close()
    found = Ledger.read(tmp_path)
    assert (found.records, found.makings) == ({0: record(0), 1: record(1)}, {"m": MAKING})
