"""F6: asked to stop, a run finishes what is in flight and says 75; asked twice, it commits what is complete."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.core import ImageInfo, Request, Result
from photon.engine.null import scripted
from photon.job.run import run
from photon.job.stop import Abandoned, Stop
from photon.manifest.load import load_manifest
from tests.job.inputs import png, write_parquet
from tests.program import COMMAND

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat, dog]}, {name: cap, type: caption}]"


class Slow:
    """Takes in a few requests at a time; ``on`` is called with the number of the answer that it is about to give."""

    fingerprint, statistics = "slow", None

    def __init__(self, on: Callable[[int], None], window: int = 12) -> None:
        self.facts: dict[str, object] = {}
        self.taken = 0
        self._on, self._window = on, window

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        waiting: list[Request] = []
        coming = iter(requests)
        for number in range(1 << 30):
            while len(waiting) < self._window and (request := next(coming, None)) is not None:
                waiting.append(request)
                self.taken += 1
            if not waiting:
                return
            request = waiting.pop(0)
            self._on(number)
            yield Result(request.id, image=ImageInfo(40, 30), **scripted(request))

    def close(self) -> None:
        """Nothing to stop."""


def rows_of(folder: str = "out/data") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(folder, format="ipc").to_table().to_pylist()
    return found


def status() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(Path("out/shards/0000-of-0001.status.json").read_text(encoding="utf-8"))
    return made


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """A test run in a shell's background inherits an ignored SIGINT; a person's terminal does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Stop() as stop:
        kill(signal.SIGINT)
        assert not stop.asked
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_what_is_in_flight_is_finished(manifest_file: Write, number: int) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 40)
    path = manifest_file(tasks=TASKS)
    taken: list[int] = []

    def on(answer: int) -> None:
        if answer == 30:
            kill(number)
            taken.append(engine.taken)

    engine = Slow(on)
    with Stop() as stop:
        summary = run(load_manifest(path), engine=engine, stop=stop)
    assert (summary.exit_code, summary.state, status()["state"]) == (75, "preempted", "preempted")
    assert engine.taken - taken[0] <= 3, "the row under way, and no other"
    finished = len(rows_of()) + len(rows_of("out/open"))
    assert summary.new_rows == finished == engine.taken // 3, "all of them answered and on disk"
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler), "handlers are put back"
    asked: list[int] = []
    engine = Slow(asked.append)
    summary = run(load_manifest(path), engine=engine)
    assert (summary.rows, summary.exit_code, len(asked)) == (40, 0, 3 * (40 - finished))
    assert [row["row_id"] for row in rows_of()] == [f"row{n}" for n in range(40)]


@pytest.mark.parametrize(("second", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130), (None, 75)])
def test_a_second_signal_or_the_end_of_the_grace_period(manifest_file: Write, second: int | None, code: int) -> None:
    """What is complete is committed; what is in flight is done again."""
    write_parquet(Path("rows.parquet"), [png()] * 40)
    path = manifest_file(tasks=TASKS)

    def on(answer: int) -> None:
        if answer == 30:
            kill(signal.SIGTERM)
        if answer == 33:
            if second is not None:
                kill(second)
            time.sleep(60)  # a device that does not come to an end; the alarm ends this

    with Stop(grace=60 if second is not None else 0.05) as stop:
        summary = run(load_manifest(path), engine=Slow(on), stop=stop)
    assert (summary.exit_code, summary.state) == (code, "preempted")
    assert (len(rows_of()), len(rows_of("out/open"))) == (8, 3), "11 rows had all their three answers"
    assert run(load_manifest(path), engine=Slow(lambda answer: None)).new_rows == 32
    assert [row["row_id"] for row in rows_of()] == [f"row{n}" for n in range(40)]


def test_before_the_work_begins(manifest_file: Write) -> None:
    """As while a model is being loaded: the run ends before it asks anything."""
    write_parquet(Path("rows.parquet"), [png()] * 4)
    path = manifest_file(tasks=TASKS)
    with Stop() as stop:
        kill(signal.SIGTERM)
        summary = run(load_manifest(path), engine=Slow(lambda answer: pytest.fail("asked")), stop=stop)
    assert (summary.exit_code, summary.new_rows) == (75, 0)
    with Stop():
        kill(signal.SIGTERM)
        with pytest.raises(Abandoned):
            kill(signal.SIGTERM)


def test_another_thread_takes_no_signals() -> None:
    def enter() -> None:
        with Stop():
            handlers.append(signal.getsignal(signal.SIGTERM))

    handlers: list[Any] = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert handlers == [signal.SIG_DFL]


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_a_process_with_a_model(manifest_file: Write, twice: bool) -> None:
    """TERM to the program itself, on the engine with its threads: intake stops at once, and it ends in time."""
    write_parquet(Path("rows.parquet"), [png(size=(60, 60))] * 400)
    manifest_file(model="{path: photon://tiny}", tasks="[{name: things, type: detect, objects: [cat], max_objects: 3}]")
    process = subprocess.Popen(
        [*COMMAND, "run", "m.yaml", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not list(Path("out/data").glob("part-*.arrow")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        if twice:
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 75, stderr
    made = json.loads(stdout)
    assert 0 < made["new_rows"] < 400
    finished = len(rows_of()) + (len(rows_of("out/open")) if list(Path("out/open").iterdir()) else 0)
    assert finished == made["new_rows"]
    assert run(load_manifest(Path("m.yaml"))).rows == 400
    assert [row["row_id"] for row in rows_of()] == [f"row{n}" for n in range(400)]
