"""Chunks and the outbox behind them: whole chunks only, in order, and a writer's error is never lost."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from photon.core import Failure
from photon.data.unit import Unit
from photon.errors import OutputError
from photon.job.chunks import Chunks
from photon.job.outbox import Outbox
from photon.job.outcome import Outcome
from photon.plan.ledger import Record
from photon.plan.plan import Chunk, Plan, Span


def chunk(number: int, rows: int = 4) -> Chunk:
    return Chunk(number, 4 * number, 4 * number, rows)


def outcome(place: int, failure: Failure | None = None) -> Outcome:
    return Outcome(place, f"row{place}", {"row": place}, failure=failure)


@given(st.permutations(range(11)), st.integers(1, 13))
def test_any_arrival_order_gives_the_same_chunks(order: list[int], size: int) -> None:
    plan = Plan("job", size, "parquet", {}, [Unit("f", (11,))], [Span(0, 0, 11)])
    sent: dict[int, list[int]] = {}
    chunks = Chunks(plan.at, lambda chunk, rows: sent.update({chunk.number: [row.place for row in rows]}))
    for place in order:
        chunks.add(outcome(place))
    assert chunks.waiting == 0
    assert chunks.unfinished() == []
    assert [sent[number] for number in sorted(sent)] == [
        list(range(start, min(start + size, 11))) for start in range(0, 11, size)
    ]


def test_rows_of_chunks_that_are_not_whole_are_given_away_in_order() -> None:
    chunks = Chunks(lambda place: chunk(place // 4), lambda chunk, rows: None)
    for place in (9, 2, 8, 0):
        chunks.add(outcome(place))
    assert chunks.waiting == 4
    left = [(chunk.number, [row.place for row in rows]) for chunk, rows in chunks.unfinished()]
    assert left == [(0, [0, 2]), (2, [8, 9])]
    assert chunks.waiting == 0


def test_a_row_comes_once() -> None:
    chunks = Chunks(lambda place: chunk(place // 4), lambda chunk, rows: None)
    chunks.add(outcome(1))
    with pytest.raises(ValueError, match="row 1 came twice"):
        chunks.add(outcome(1))


def test_bytes_of_broken_pictures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("photon.job.chunks._SAMPLES", 25)
    chunks = Chunks(lambda place: chunk(0), lambda chunk, rows: None)
    for place in range(3):
        chunks.add(outcome(place, Failure("IMAGE_TRUNCATED", "cut off", b"0123456789")))
    ((_, rows),) = chunks.unfinished()
    assert [row.failure.sample for row in rows if row.failure] == [b"0123456789", b"0123456789", None]


class FakeWriter:
    """Notes what it is given; fails at ``fail_at``; waits for ``gate`` before each chunk."""

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None) -> None:
        self.written: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self._fail_at, self._error = fail_at, error

    def write(self, chunk: Chunk, outcomes: list[Outcome]) -> Record:
        self.gate.wait(10)
        if chunk.number == self._fail_at and self._error is not None:
            raise self._error
        self.written.append(chunk.number)
        return Record(chunk.number, 0, len(outcomes), len(outcomes), 0, 0, {}, 10, "", "m")


def test_close_returns_when_all_is_written() -> None:
    writer = FakeWriter()
    outbox = Outbox(writer)
    for number in range(5):
        outbox.put(chunk(number), [])
    outbox.close()
    outbox.close()
    assert writer.written == [0, 1, 2, 3, 4]


def test_put_waits_only_when_the_queue_is_full() -> None:
    writer = FakeWriter()
    writer.gate.clear()
    outbox = Outbox(writer, depth=2)
    for number in range(2):
        outbox.put(chunk(number), [])
    done = threading.Event()

    def put_more() -> None:
        outbox.put(chunk(2), [])
        outbox.put(chunk(3), [])
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
    outbox.put(chunk(0), [])
    outbox.put(chunk(1), [])
    deadline = time.monotonic() + 10
    while not _refuses(outbox, raised) and time.monotonic() < deadline:
        time.sleep(0.001)
    for number in range(2, 10):  # every put after the failure raises, none blocks
        with pytest.raises(raised):
            outbox.put(chunk(number), [])
    with pytest.raises(raised):
        outbox.close()
    assert writer.written[0] == 0
    assert 1 not in writer.written


def _refuses(outbox: Outbox, raised: type[Exception]) -> bool:
    try:
        outbox.put(chunk(2), [])
    except raised:
        return True
    return False
