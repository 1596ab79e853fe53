"""Chunks and the outbox behind them: whole chunks only, in order, and a writer's error is never lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from photon.data.writer import Part
from photon.errors import OutputError
from photon.job.chunks import Cells, Chunks
from photon.job.outbox import Outbox


@given(st.permutations(range(11)), st.integers(1, 13))
def test_any_arrival_order_gives_the_same_chunks(order: list[int], size: int) -> None:
    sent: dict[int, list[int]] = {}
    chunks = Chunks(size, lambda number, rows: sent.update({number: [row["row"] for row in rows]}))
    for index in order:
        chunks.add(index, {"row": index})
    assert all(len(rows) == size for rows in sent.values()), "before the end only whole chunks leave"
    chunks.finish()
    assert chunks.waiting == 0
    assert [sent[number] for number in sorted(sent)] == [
        list(range(start, min(start + size, 11))) for start in range(0, 11, size)
    ]


def test_a_row_comes_once() -> None:
    chunks = Chunks(4, lambda number, rows: None)
    chunks.add(1, {})
    with pytest.raises(ValueError, match="row 1 came twice"):
        chunks.add(1, {})


class FakeWriter:
    """Notes what it is given; fails at ``fail_at``; waits for ``gate`` before each chunk."""

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None) -> None:
        self.written: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self._fail_at, self._error = fail_at, error

    def write(self, chunk: int, rows: list[Cells]) -> Part:
        self.gate.wait(10)
        if chunk == self._fail_at and self._error is not None:
            raise self._error
        self.written.append(chunk)
        return Part(Path(f"part-{chunk}"), len(rows), 10)


def test_close_returns_when_all_is_written() -> None:
    writer = FakeWriter()
    outbox = Outbox(writer)
    for chunk in range(5):
        outbox.put(chunk, [{}])
    outbox.close()
    outbox.close()
    assert writer.written == [0, 1, 2, 3, 4]
    assert sum(part.rows for part in outbox.parts) == 5


def test_put_waits_only_when_the_queue_is_full() -> None:
    writer = FakeWriter()
    writer.gate.clear()
    outbox = Outbox(writer, depth=2)
    for chunk in range(2):
        outbox.put(chunk, [{}])
    done = threading.Event()

    def put_more() -> None:
        outbox.put(2, [{}])
        outbox.put(3, [{}])
        done.set()

    threading.Thread(target=put_more, daemon=True).start()
    assert not done.wait(0.2), "a slow disk holds the engine back instead of filling the memory"
    writer.gate.set()
    assert done.wait(10)
    outbox.close()
    assert writer.written == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OutputError("the disk is full"), OutputError),
        (TypeError("a bug"), TypeError),
    ],
)
def test_an_error_of_the_writer_comes_out(error: BaseException, raised: type[Exception]) -> None:
    writer = FakeWriter(fail_at=1, error=error)
    outbox = Outbox(writer)
    outbox.put(0, [])
    outbox.put(1, [])
    deadline = time.monotonic() + 10
    while not _refuses(outbox, raised) and time.monotonic() < deadline:
        time.sleep(0.001)
    for chunk in range(2, 10):  # every put after the failure raises, none blocks
        with pytest.raises(raised):
            outbox.put(chunk, [])
    with pytest.raises(raised):
        outbox.close()
    assert writer.written[0] == 0
    assert 1 not in writer.written


def _refuses(outbox: Outbox, raised: type[Exception]) -> bool:
    try:
        outbox.put(2, [])
    except raised:
        return True
    return False
