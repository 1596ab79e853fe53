"""F9 and F10: the device's memory runs out, it is lost, it hangs; the disk is full; two processes want one shard."""

from __future__ import annotations

import errno
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.core import ImageInfo, Request, Result
from photon.data.disk import replace as replace_file
from photon.device.device import Operation
from photon.device.threads import ThreadDevice
from photon.engine.null import scripted
from photon.errors import DeviceMemoryError, EngineError, OutputError, StallError, UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.owner import STALE, Owner, OwnerRecord, owners
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat], max_objects: 2}]"
TINY = {"model": "{path: photon://tiny}", "tasks": TASKS, "engine": "{max_batch: 4}"}


def rows_of(folder: str = "out/data") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(folder, format="ipc").to_table().to_pylist()
    return found


def crash_reports() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path("out/crash").glob("*.json"))]


def status() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(Path("out/shards/0000-of-0001.status.json").read_text(encoding="utf-8"))
    return made


class Fault:
    """Makes the ``number``-th forward of the worker-thread device do ``what`` in place of its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, what: Callable[[], None]) -> None:
        self.left = number
        honest = ThreadDevice.launch

        def launch(device: ThreadDevice, stream: Any, operation: Operation, after: Any = ()) -> Any:
            if stream == "compute":
                self.left -= 1
                if not self.left:
                    operation = replace(operation, run=what)
            return honest(device, stream, operation, after)

        monkeypatch.setattr(ThreadDevice, "launch", launch)


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_out_of_memory_halves_the_batch_once_and_remembers(
    manifest_file: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 14)
    path = manifest_file(**TINY)
    # Early: how many forwards a run has hangs on how pictures fall into batches, and so on the moment.
    Fault(monkeypatch, 8, raising(DeviceMemoryError("the CUDA device is out of memory")))
    summary = run(load_manifest(path))
    assert (summary.rows, summary.ok, summary.exit_code) == (14, 14, 0)
    assert (status()["max_batch"], status()["state"]) == (2, "finished")
    assert "going on with a batch of 2 in place of 4" in caplog.text
    made = rows_of()
    assert [row["row_id"] for row in made] == [f"row{n}" for n in range(14)]
    monkeypatch.undo()
    os.chdir(path.parent)
    assert json.loads(Path("out/run.json").read_text())["model"]["max_batch"] == 4, "what it began with"
    write_parquet(Path("more.parquet"), [png()] * 2, name=["more0", "more1"])
    run(load_manifest(manifest_file(**TINY, input="{parquet: [rows.parquet, more.parquet], id: name}")))
    assert json.loads(Path("out/run.json").read_text())["model"]["max_batch"] == 2, "remembered"


def test_out_of_memory_twice_ends_the_run(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 4)
    path = manifest_file(**TINY)

    def launch(device: ThreadDevice, stream: Any, operation: Operation, after: Any = ()) -> Any:
        if stream == "compute":
            operation = replace(operation, run=raising(DeviceMemoryError("the CUDA device is out of memory")))
        return honest(device, stream, operation, after)

    honest = ThreadDevice.launch
    monkeypatch.setattr(ThreadDevice, "launch", launch)
    with pytest.raises(DeviceMemoryError) as caught:
        run(load_manifest(path))
    assert caught.value.exit_code == 2
    assert status()["state"] == "failed"


@pytest.mark.parametrize("kind", ["lost", pytest.param("stalled", marks=pytest.mark.slow)])
def test_a_device_that_is_lost_or_hangs(manifest_file: Write, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Exit 70, with what was finished on disk and a report of what was going on; the same command goes on."""
    write_parquet(Path("rows.parquet"), [png()] * 30)
    path = manifest_file(**TINY | ({"engine": "{max_batch: 4, stall_timeout: 2}"} if kind == "stalled" else {}))
    lost = raising(RuntimeError("CUDA error: an illegal memory access was encountered"))
    hang = threading.Event()
    Fault(monkeypatch, 15, lost if kind == "lost" else lambda: hang.wait(60) and None)
    with pytest.raises(EngineError if kind == "lost" else StallError) as caught:
        run(load_manifest(path))
    hang.set()
    assert caught.value.exit_code == 70
    (report,) = crash_reports()
    assert report["shard"] == "0000-of-0001"
    assert (kind == "stalled") == any("photon-compute" in note for note in report["notes"]), "stacks, of a stall"
    finished = len(rows_of()) + len(rows_of("out/open"))
    places = sorted(place for place, _ in report["rows"])
    assert finished > 0
    assert places
    assert all(row_id == f"row{place}" for place, row_id in report["rows"])
    assert {f"row{place}" for place in places}.isdisjoint(row["row_id"] for row in rows_of() + rows_of("out/open"))
    assert any("crash report: out/crash/" in note for note in caught.value.__notes__)
    monkeypatch.undo()
    os.chdir(path.parent)
    summary = run(load_manifest(path))
    assert (summary.rows, summary.ok, summary.exit_code) == (30, 30, 0)


class Poisoned(ShufflingEngine):
    """Goes down whenever the row at ``place`` is in it."""

    def __init__(self, place: int, window: int = 6) -> None:
        super().__init__(window=window)
        self.place, self.room = place, window
        self.seen: list[list[int]] = []

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        arrived: queue.Queue[Request | None] = queue.Queue(self.room)

        def feed() -> None:
            for request in requests:
                arrived.put(request)
            arrived.put(None)

        threading.Thread(target=feed, daemon=True).start()
        inside: list[Request] = []
        ended = False
        while not ended or inside:
            while not ended and (not inside or len(inside) < self.room):
                try:
                    request = arrived.get(timeout=0.05 if inside else None)
                except queue.Empty:
                    break
                ended = request is None
                if request is not None:
                    inside.append(request)
            self.seen.append([request.id[0] for request in inside])  # type: ignore[index]
            if any(request.id[0] == self.place for request in inside):  # type: ignore[index]
                raise EngineError("the device is gone")
            if inside:
                done = inside.pop(0)
                yield Result(done.id, image=ImageInfo(40, 30), **scripted(done))


def test_a_row_that_brings_the_engine_down(manifest_file: Write) -> None:
    """Twice among others, then alone, then set aside; the others are all answered."""
    write_parquet(Path("rows.parquet"), [png()] * 20)
    path = manifest_file(tasks=TASKS, errors="{max_failure_rate: 0.1}")
    for attempt in range(3):
        engine = Poisoned(9)
        with pytest.raises(EngineError):
            run(load_manifest(path), engine=engine)
        assert len(engine.seen[-1]) > 1 or attempt == 2, "among others at first"
    assert engine.seen[-1] == [9], "then alone"
    engine = Poisoned(9)
    summary = run(load_manifest(path), engine=engine)
    assert all(9 not in places for places in engine.seen), "then not at all"
    assert (summary.rows, summary.failed, summary.exit_code) == (20, 1, 0)
    bad = rows_of()[9]
    assert (bad["status"], bad["error_code"], bad["things"]["status"]) == ("quarantined", "ENGINE_POISON", "skipped")
    (set_aside,) = rows_of("out/quarantine")
    assert (set_aside["row_id"], set_aside["error_code"]) == ("row9", "ENGINE_POISON")
    assert len(crash_reports()) == 3
    healed = ShufflingEngine(window=1)
    summary = run(load_manifest(path), engine=healed, retry=["ENGINE_POISON"])
    assert (summary.failed, rows_of()[9]["status"], rows_of()[9]["things"]["status"]) == (0, "ok", "ok")
    assert not list(Path("out/quarantine").iterdir())


def test_broken_pictures_are_set_aside_with_their_bytes(manifest_file: Write) -> None:
    broken = b"no picture " * 200_000
    write_parquet(Path("rows.parquet"), [png(), broken, None, png()[:40]])
    run(load_manifest(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}")))
    kept = {row["row_id"]: (row["error_code"], row["bytes"]) for row in rows_of("out/quarantine")}
    assert kept == {
        "row1": ("IMAGE_UNIDENTIFIED", broken[: 1 << 20]),
        "row2": ("IMAGE_MISSING", None),
        "row3": ("IMAGE_TRUNCATED", png()[:40]),
    }


def test_to_end_at_the_first_failure(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6 + [None] + [png()] * 13)
    path = manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}")
    summary = run(load_manifest(path), engine=ShufflingEngine(window=1), fail_fast=True)
    assert (summary.failed, summary.exit_code) == (1, 3)
    assert summary.rows <= 8, "the row that was under way, and no further"
    assert run(load_manifest(path), engine=ShufflingEngine(window=1)).rows == 20


@pytest.mark.parametrize("where", ["part", "record"])
def test_a_full_disk(manifest_file: Write, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """No partial part is to be seen, exit 5; with room again the same command goes on."""
    write_parquet(Path("rows.parquet"), [png()] * 30)
    path = manifest_file(tasks=TASKS)
    honest, left = os.fsync, [9]

    def fsync(handle: int) -> None:
        name = os.readlink(f"/proc/self/fd/{handle}")
        left[0] -= ("/data/.part-" if where == "part" else "/ledger/") in name
        if left[0] < 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OutputError, match="the disk is full: free space and run again, nothing is lost") as caught:
        run(load_manifest(path), engine=ShufflingEngine(window=1))
    assert caught.value.exit_code == 5
    assert all(path.name.startswith("part-") for path in Path("out/data").iterdir())
    assert [len(rows_of(str(path))) for path in sorted(Path("out/data").iterdir())] == [4] * (4 + (where == "record"))
    monkeypatch.setattr(os, "fsync", honest)
    assert run(load_manifest(path), engine=ShufflingEngine(window=1)).rows == 30
    assert [row["row_id"] for row in rows_of()] == [f"row{n}" for n in range(30)]


# -- owners ----------------------------------------------------------------------------------------------------------


def owner(**changes: Any) -> Owner:
    now = time.time()
    known = {"shard": "0000-of-0001", "host": "elsewhere", "pid": 1, "started": now, "heartbeat": now, "token": "t"}
    return Owner(**{**known, **changes})


def put(record: Owner) -> Path:
    path = Path(f"out/shards/{record.shard}.owner.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(record)), encoding="utf-8")
    return path


def test_two_processes_on_one_shard(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    path = manifest_file(tasks=TASKS)
    record = put(owner())
    told = r"process 1 on elsewhere is at work on shard 0/1, last seen \d+ s ago; .* --steal"
    with pytest.raises(UsageError, match=told) as caught:
        run(load_manifest(path), engine=ShufflingEngine())
    assert caught.value.exit_code == 2
    assert run(load_manifest(path), engine=ShufflingEngine(), steal=True).rows == 6
    assert not record.exists(), "given back at the end"


@pytest.mark.parametrize(
    "gone",
    [
        {"heartbeat": time.time() - STALE - 1},
        {"host": os.uname().nodename, "pid": 2**22 + 1},
        {"host": os.uname().nodename, "pid": os.getpid()},
    ],
    ids=["silent", "dead", "our own number"],
)
def test_an_owner_that_is_gone(manifest_file: Write, gone: dict[str, Any]) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    put(owner(**gone))
    assert run(load_manifest(manifest_file(tasks=TASKS)), engine=ShufflingEngine()).rows == 6


def test_another_division_at_the_same_time(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 6)
    path = manifest_file(tasks=TASKS)
    put(owner(shard="0002-of-0004"))
    with pytest.raises(UsageError, match="is at work on shard 0002-of-0004, another division of the same job"):
        run(load_manifest(path), engine=ShufflingEngine(), shard=Shard(0, 3))
    assert run(load_manifest(path), engine=ShufflingEngine(), shard=Shard(0, 4)).exit_code == 0


def test_a_shard_that_is_taken_away(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lost it writes nothing more. No sign of life is under way at the theft: it would put our record back, and
    then the thief is who has lost."""
    monkeypatch.setattr("photon.plan.owner.HEARTBEAT", 0.01)
    writing, stolen = threading.Lock(), threading.Event()

    def beat(record: Path, text: str) -> None:
        with writing:
            if not stolen.is_set():
                replace_file(record, text)

    monkeypatch.setattr("photon.plan.owner.replace", beat)
    write_parquet(Path("rows.parquet"), [png()] * 200)
    path = manifest_file(tasks=TASKS)

    class Robbed(ShufflingEngine):
        def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
            for number, result in enumerate(super().run(requests, trace=trace)):
                if number == 50:
                    (ours,) = (thread for thread in threading.enumerate() if thread.name == "heartbeat")
                    with writing:
                        OwnerRecord(Path("out"), Shard()).take(steal=True)
                        stolen.set()
                    ours.join(10)
                    assert not ours.is_alive()
                yield result

    with pytest.raises(UsageError, match="another process has taken over this shard"):
        run(load_manifest(path), engine=Robbed(window=1))
    assert len(rows_of()) <= 52
    assert [found.shard for found in owners(Path("out"))] == ["0000-of-0001"], "the thief's record is left alone"
