"""Kills and signals where they hurt most: in a retry, around an open chunk, with another process near."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.audit.verify import verify
from photon.core import Failure, Request, Result
from photon.errors import EngineError, UsageError
from photon.job import commit as module
from photon.job.outbox import Outbox
from photon.job.quarantine import Quarantine
from photon.job.run import run
from photon.job.stop import Stop
from photon.manifest.load import load_manifest
from photon.plan.ledger import Ledger, LedgerFile, Record
from photon.plan.owner import Owner
from photon.plan.plan import Chunk
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet
from tests.job.test_signals import Slow

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat]}, {name: cap, type: caption}]"
LENIENT = "{max_failure_rate: 1}"


class Killed(BaseException):
    """Where a test pretends that the process is gone: nothing of ours catches it on purpose."""


def rows_of(folder: str = "out/data") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(folder, format="ipc").to_table().to_pylist()
    return found


def in_order() -> bool:
    return verify(Path("out")).exit_code == 0


class Failing(ShufflingEngine):
    """Fails the caption of row 2."""

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        for result in super().run(requests, trace=trace):
            failed = result.id == (2, 1, 0)
            yield Result(result.id, error=Failure("CANCELLED", "no time")) if failed else result


@pytest.fixture
def failed(manifest_file: Write) -> Path:
    """Twelve rows in three chunks, one of them failed."""
    write_parquet(Path("rows.parquet"), [png()] * 12)
    path = manifest_file(tasks=TASKS, errors=LENIENT)
    assert run(load_manifest(path), engine=Failing(window=1)).failed == 1
    return path


@pytest.mark.parametrize("where", ["after the quarantine", "after the part"])
def test_a_retry_that_is_killed(failed: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """A plain run puts it in order: what was recomputed and not recorded counts, or counts not at all."""

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    if where == "after the part":
        monkeypatch.setattr(LedgerFile, "commit", die)
    else:
        monkeypatch.setattr(module.PartWriter, "write", die)
    honest = Quarantine.write
    monkeypatch.setattr(
        Quarantine, "write", lambda self, *how: None if where == "after the part" else honest(self, *how)
    )
    with pytest.raises(Killed):
        run(load_manifest(failed), engine=ShufflingEngine(window=1), retry=[])
    monkeypatch.undo()
    os.chdir(failed.parent)
    assert not in_order()
    summary = run(load_manifest(failed), engine=ShufflingEngine(window=1))
    assert in_order()
    assert summary.failed == len(rows_of("out/quarantine") if list(Path("out/quarantine").iterdir()) else [])
    assert summary.failed == (where == "after the quarantine")
    assert run(load_manifest(failed), engine=ShufflingEngine(window=1), retry=[]).failed == 0
    assert in_order()


def test_a_retry_that_is_stopped_leaves_nothing_behind(failed: Path) -> None:
    with pytest.raises(EngineError):
        run(load_manifest(failed), engine=ShufflingEngine(window=1, stop_after=0, error=EngineError("gone")), retry=[])
    assert list(Path("out/open").iterdir())
    run(load_manifest(failed), engine=ShufflingEngine(window=1))
    assert not list(Path("out/open").iterdir())
    assert in_order()


def test_killed_after_the_last_record(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """run.json still says that it is running; the next run, which has nothing to do, says how it is."""
    write_parquet(Path("rows.parquet"), [png()] * 4)
    path = manifest_file(tasks=TASKS)
    honest = LedgerFile.commit

    def commit(self: LedgerFile, *how: Any) -> None:
        honest(self, *how)
        raise Killed

    monkeypatch.setattr(LedgerFile, "commit", commit)
    with pytest.raises(Killed):
        run(load_manifest(path), engine=ShufflingEngine(window=1))
    monkeypatch.setattr(LedgerFile, "commit", honest)
    record = json.loads(Path("out/run.json").read_text())
    Path("out/run.json").write_text(json.dumps({**record, "state": "running"}))
    summary = run(load_manifest(path), engine=ShufflingEngine(window=1))
    assert (summary.rows, summary.new_rows, summary.exit_code) == (4, 0, 0)
    assert json.loads(Path("out/run.json").read_text())["state"] == "finished"
    assert in_order()


def put_owner(shard: str) -> None:
    now = time.time()
    path = Path(f"out/shards/{shard}.owner.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = Owner(shard, "elsewhere", 1, now, now, "t")
    path.write_text(json.dumps({name: getattr(owner, name) for name in owner.__slots__}))


def test_fresh_does_not_pull_the_rug(failed: Path) -> None:
    """While another process is at work on the results, they stay."""
    put_owner("0000-of-0001")
    before = sorted(path.name for path in Path("out").rglob("*"))
    with pytest.raises(UsageError, match="is at work on shard"):
        run(load_manifest(failed), engine=ShufflingEngine(), fresh=True)
    assert sorted(path.name for path in Path("out").rglob("*")) == before
    assert run(load_manifest(failed), engine=ShufflingEngine(), fresh=True, steal=True).rows == 12
    assert in_order()


def test_the_plan_is_not_extended_under_others(failed: Path) -> None:
    """Shards are stretches of the plan as it was when they began."""
    put_owner("0001-of-0002")
    write_parquet(Path("more.parquet"), [png()] * 5)
    text = failed.read_text().replace("rows.parquet", "[rows.parquet, more.parquet]")
    failed.write_text(text)
    with pytest.raises(UsageError, match="another division of the same job"):
        run(load_manifest(failed), engine=ShufflingEngine())
    assert not Path("out/plan-0001.json").exists()


def test_a_signal_after_the_drain(manifest_file: Write) -> None:
    """A second one while finished rows are being put down does not tear that."""
    write_parquet(Path("rows.parquet"), [png()] * 40)
    path = manifest_file(tasks=TASKS)
    honest = module.Committer.keep

    def keep(self: module.Committer, *how: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        honest(self, *how)

    def on(answer: int) -> None:
        if answer == 20:
            os.kill(os.getpid(), signal.SIGTERM)

    module.Committer.keep = keep  # type: ignore[method-assign]
    try:
        with Stop() as stop:
            summary = run(load_manifest(path), engine=Slow(on), stop=stop)
    finally:
        module.Committer.keep = honest  # type: ignore[method-assign]
    assert summary.exit_code == 75
    assert len(rows_of()) + len(rows_of("out/open")) == summary.new_rows


def test_an_outbox_that_was_cut_short_waits_again() -> None:
    class Writer:
        def __init__(self) -> None:
            self.written: list[int] = []

        def write(self, chunk: Chunk, outcomes: list[Any]) -> Any:
            time.sleep(0.05)
            self.written.append(chunk.number)
            return Record(chunk.number, 0, 1, 1, 0, 0, {}, 10, "", "m")

    writer = Writer()
    outbox = Outbox(writer)
    outbox._thread.join = lambda *_: (_ for _ in ()).throw(Killed)  # type: ignore[assignment, method-assign]
    outbox.put(Chunk(0, 0, 0, 1), [])
    with pytest.raises(Killed):
        outbox.close()
    del outbox._thread.join
    outbox.close()
    assert writer.written == [0]


def test_rows_that_fail_without_being_asked_end_a_run_too(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [None] * 2000)
    path = manifest_file(tasks=TASKS, errors="{max_failure_rate: 0.01, min_rows: 20}")
    summary = run(load_manifest(path), engine=ShufflingEngine())
    assert (summary.exit_code, summary.rows < 30) == (3, True)
    summary = run(load_manifest(path), engine=ShufflingEngine(), fresh=True, fail_fast=True)
    assert (summary.exit_code, summary.rows) == (3, 1)


def test_two_models_side_by_side(manifest_file: Write) -> None:
    """Shards that begin together see nothing of each other; the second to commit is stopped."""
    write_parquet(Path("rows.parquet"), [png()] * 20)
    path = manifest_file(tasks=TASKS)

    class Other(ShufflingEngine):
        fingerprint = "another"

        def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
            run(load_manifest(path), engine=ShufflingEngine(), shard=Shard(1, 2))
            yield from super().run(requests, trace=trace)

    with pytest.raises(UsageError, match="were made with model shuffling, and now it is another"):
        run(load_manifest(path), engine=Other(window=1), shard=Shard(0, 2))
    assert {record.making for record in Ledger.read(Path("out")).records.values()} == set(
        Ledger.read(Path("out")).makings
    )


# -- sources that do not know their end ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rows", [8, 10])
def test_a_stream_to_its_end_and_again(manifest_file: Write, rows: int) -> None:
    """Once to the end; then nothing; then a changed task, with one end as before."""
    Path("a.png").write_bytes(png())
    Path("rows.jsonl").write_text("".join(json.dumps({"image": "a.png", "n": n}) + "\n" for n in range(rows)))
    spec = {"input": "{hub: json, options: {data_files: rows.jsonl}}", "errors": LENIENT}
    path = manifest_file(tasks=TASKS, **spec)
    assert run(load_manifest(path), engine=ShufflingEngine()).rows == rows
    assert run(load_manifest(path), engine=ShufflingEngine()).new_rows == 0
    changed = manifest_file(tasks=TASKS.replace("cat", "dog"), **spec)
    for new in (rows, 0):
        summary = run(load_manifest(changed), engine=ShufflingEngine())
        assert (summary.rows, summary.new_rows) == (rows, new)
        assert sum(record.last for record in Ledger.read(Path("out")).records.values()) == 1
        assert in_order()
