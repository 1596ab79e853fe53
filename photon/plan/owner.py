"""Who works on a shard: a record with a heartbeat that keeps two processes off one shard. No locks, which network file
systems keep badly.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from photon.data.disk import blaming, create, replace
from photon.errors import UsageError
from photon.plan.shard import Shard

FOLDER = "shards"
#: Seconds between two signs of life, and how long without one makes an owner stale.
HEARTBEAT, STALE = 20.0, 600.0
_OURS: set[str] = set()
"""Tokens of this process."""


@dataclass(frozen=True, slots=True)
class Owner:
    """``token`` tells two processes apart, of one host and number even. Times are seconds since the epoch."""

    shard: str
    host: str
    pid: int
    started: float
    heartbeat: float
    token: str

    @property
    def told(self) -> str:
        return f"process {self.pid} on {self.host}"

    def is_stale(self, now: float) -> bool:
        """Whether it is known to be gone: dead on this host, or silent for ten minutes."""
        if self.host == socket.gethostname():
            if self.pid == os.getpid() and self.token not in _OURS:  # its number was given to us
                return True
            if not _is_alive(self.pid):
                return True
        return now - self.heartbeat > STALE


class OwnerRecord:
    """This process's claim on a shard, from ``take`` until ``release``."""

    def __init__(self, root: Path, shard: Shard) -> None:
        self._folder, self._shard = root / FOLDER, shard
        self._path = self._folder / f"{shard.name}.owner.json"
        now = time.time()
        self._owner = Owner(shard.name, socket.gethostname(), os.getpid(), now, now, secrets.token_hex(8))
        self._stop = threading.Event()
        self._lost = False
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def take(self, *, steal: bool = False) -> None:
        """Raises ``UsageError`` where a live process has the shard, or one of another division of the job; ``steal``
        takes it from whoever has it."""
        with blaming(self._path):
            self._folder.mkdir(parents=True, exist_ok=True)
        self._check_division()
        for _ in range(10):  # each failure means that another process did something meanwhile
            if self._create():
                _OURS.add(self._owner.token)
                self._thread.start()
                return
            owner = read_owner(self._path)
            if owner is None:
                continue
            if not steal and not owner.is_stale(time.time()):
                raise UsageError(
                    f"{owner.told} is at work on shard {self._shard.number}/{self._shard.count}, last seen "
                    f"{max(0, time.time() - owner.heartbeat):.0f} s ago; wait for it, or take the shard with --steal "
                    "if you know that it is gone"
                )
            self._remove(owner)
        raise UsageError(f"other processes are taking {self._path} at the same time; start one at a time")

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the shard since."""
        return self._lost

    def release(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        _OURS.discard(self._owner.token)
        if not self._lost and (owner := read_owner(self._path)) is not None and owner.token == self._owner.token:
            self._path.unlink(missing_ok=True)

    def _check_division(self) -> None:
        now = time.time()
        for owner in owners(self._folder.parent):
            if not owner.shard.endswith(f"-of-{self._shard.count:04d}") and not owner.is_stale(now):
                raise UsageError(
                    f"{owner.told} is at work on shard {owner.shard}, another division of the same job than into "
                    f"{self._shard.count}; wait for it to end, then divide anew"
                )

    def _create(self) -> bool:
        with blaming(self._path):
            return create(self._path, json.dumps(asdict(self._owner)))

    def _remove(self, owner: Owner) -> None:
        """Of all that try, one succeeds in moving a stale record away."""
        aside = self._path.with_name(f".{owner.token}.stale")
        try:
            os.rename(self._path, aside)
            aside.unlink()
        except FileNotFoundError:
            pass

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            owner = read_owner(self._path)
            if owner is None or owner.token != self._owner.token:
                self._lost = True
                return
            beating = Owner(**{**asdict(self._owner), "heartbeat": time.time()})
            try:
                replace(self._path, json.dumps(asdict(beating)))
            except OSError:
                continue  # a full disk is the writer's to tell


def read_owner(path: Path) -> Owner | None:
    """None where there is no record, or none of ours."""
    try:
        return Owner(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def owners(root: Path) -> Iterator[Owner]:
    """All that have a record, stale ones too."""
    folder = root / FOLDER
    for path in sorted(folder.glob("*.owner.json")) if folder.is_dir() else ():
        owner = read_owner(path)
        if owner is not None:
            yield owner


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
