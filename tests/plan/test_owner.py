"""Who gets a shard: of takers that race, of records that are stale, torn, moved under one's hands or unreadable."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import photon.plan.owner
from photon.errors import OutputError, UsageError
from photon.plan.owner import STALE, Owner, OwnerRecord, owners, read_owner
from photon.plan.shard import Shard

NAME = "0000-of-0001"


def put(root: Path, shard: str = NAME, *, silent: float = 0.0, token: str = "theirs") -> Path:
    """The record of a process elsewhere, last heard of ``silent`` seconds ago."""
    then = time.time() - silent
    path = root / "shards" / f"{shard}.owner.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(Owner(shard, "elsewhere", 1, then, then, token))), encoding="utf-8")
    return path


def tear(root: Path, *, age: float) -> Path:
    """A record that was cut off while it was written."""
    path = put(root)
    path.write_text(path.read_text(encoding="utf-8")[:20], encoding="utf-8")
    os.utime(path, (time.time() - age,) * 2)
    return path


def before_the_first_rename(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], None]) -> None:
    honest, left = os.rename, [deed]

    def rename(source: Path, target: Path) -> None:
        while left:
            left.pop()()
        honest(source, target)

    monkeypatch.setattr(photon.plan.owner.os, "rename", rename)


def test_of_two_takers_of_a_stale_record_one_gets_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read it before either moves it away; the slower one finds the quicker one's record in its hands."""
    path = put(tmp_path, silent=STALE + 1)
    quick, slow = OwnerRecord(tmp_path, Shard()), OwnerRecord(tmp_path, Shard())
    before_the_first_rename(monkeypatch, quick.take)
    with pytest.raises(UsageError, match=r"is at work on shard 0/1, last seen 0 s ago"):
        slow.take()
    assert not quick.is_lost
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing is left aside"
    quick.release()
    assert not path.exists()


def test_a_stale_record_that_somebody_else_has_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, silent=STALE + 1)
    before_the_first_rename(monkeypatch, path.unlink)
    record = OwnerRecord(tmp_path, Shard())
    record.take()
    assert not record.is_lost
    record.release()


@pytest.mark.parametrize(("age", "steal"), [(STALE + 1, False), (0.0, True)], ids=["old", "stolen"])
def test_a_torn_record_is_taken_over(tmp_path: Path, age: float, steal: bool) -> None:
    path = tear(tmp_path, age=age)
    record = OwnerRecord(tmp_path, Shard())
    record.take(steal=steal)
    assert read_owner(path) is not None
    assert not record.is_lost
    record.release()


def test_a_record_that_is_torn_just_now_is_not(tmp_path: Path) -> None:
    """Somebody may be writing it."""
    path = tear(tmp_path, age=0)
    with pytest.raises(UsageError) as caught:
        OwnerRecord(tmp_path, Shard()).take()
    assert f"{path} cannot be taken, or read; " in str(caught.value)
    assert "remove that file if none is at work" in str(caught.value)
    assert path.exists()


def test_another_division_that_begins_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not there when we looked, and is when our own record is."""
    record = OwnerRecord(tmp_path, Shard(1, 3))
    honest = photon.plan.owner.create

    def create(path: Path, text: str) -> bool:
        put(tmp_path, "0002-of-0004")
        return honest(path, text)

    monkeypatch.setattr(photon.plan.owner, "create", create)
    with pytest.raises(UsageError, match="at work on shard 0002-of-0004, another division of the same job than into 3"):
        record.take()
    assert [owner.shard for owner in owners(tmp_path)] == ["0002-of-0004"], "ours is given back"


def test_a_loss_is_seen_when_it_is_asked_for(tmp_path: Path) -> None:
    """And not at the next heartbeat alone, which is 20 s away."""
    record = OwnerRecord(tmp_path, Shard())
    record.take()
    assert not record.is_lost
    path = put(tmp_path)
    assert record.is_lost
    record.release()
    assert path.exists(), "the other's record"


def test_a_file_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heart goes on, and beats again once it does."""
    monkeypatch.setattr("photon.plan.owner.HEARTBEAT", 0.001)
    record = OwnerRecord(tmp_path, Shard())
    record.take()
    refused, honest = threading.Semaphore(0), Path.read_text

    def read_text(path: Path, **how: str) -> str:
        refused.release()
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(Path, "read_text", read_text)
    assert refused.acquire(timeout=30)
    assert refused.acquire(timeout=30), "the thread lives on after the first"
    assert not record.is_lost
    with pytest.raises(OutputError, match=r"cannot read .*owner\.json: Stale file handle"):
        list(owners(tmp_path))
    monkeypatch.setattr(Path, "read_text", honest)
    before = read_owner(record.path)
    assert before is not None
    beaten, replace = threading.Event(), photon.plan.owner.replace

    def beat(path: Path, text: str) -> None:
        replace(path, text)
        if json.loads(text)["heartbeat"] > before.heartbeat:
            beaten.set()

    monkeypatch.setattr(photon.plan.owner, "replace", beat)
    assert beaten.wait(30)
    record.release()
    assert not record.path.exists()
