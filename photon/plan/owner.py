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
from contextlib import suppress
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
                try:
                    self._check_division()  # one that began together with us saw nothing of us, nor we of it
                except BaseException:
                    self.release()
                    raise
                return
            with blaming(self._path, "read"):
                owner = read_owner(self._path)
            if owner is not None:
                self._check_stale(owner, steal)
                self._remove(owner)
            elif self._is_torn(steal):
                self._remove(None)
        raise UsageError(
            f"{self._path} cannot be taken, or read; start one process at a time, and remove that file if none is at "
            "work on the shard"
        )

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the shard since, by what the record says now."""
        if not self._lost:
            with suppress(OSError):  # a file server that does not answer: what was seen last counts
                self._lost = not self._is_ours()
        return self._lost

    @property
    def path(self) -> Path:
        """Where the record stands."""
        return self._path

    def release(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        _OURS.discard(self._owner.token)
        with suppress(OSError):  # left behind it is stale, since we end
            if self._is_ours():
                self._path.unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        owner = read_owner(self._path)
        return owner is not None and owner.token == self._owner.token

    def _check_division(self) -> None:
        now = time.time()
        for owner in owners(self._folder.parent):
            if not owner.shard.endswith(f"-of-{self._shard.count:04d}") and not owner.is_stale(now):
                raise UsageError(
                    f"{owner.told} is at work on shard {owner.shard}, another division of the same job than into "
                    f"{self._shard.count}; wait for it to end, then divide anew"
                )

    def _check_stale(self, owner: Owner, steal: bool) -> None:
        now = time.time()
        if not steal and not owner.is_stale(now):
            raise UsageError(
                f"{owner.told} is at work on shard {self._shard.number}/{self._shard.count}, last seen "
                f"{max(0, now - owner.heartbeat):.0f} s ago; wait for it, or take the shard with --steal "
                "if you know that it is gone"
            )

    def _is_torn(self, steal: bool) -> bool:
        """Whether there is a record, which tells nothing and nobody is about to write any more."""
        with blaming(self._path, "read"):
            try:
                return steal or time.time() - self._path.stat().st_mtime > STALE
            except FileNotFoundError:
                return False

    def _create(self) -> bool:
        with blaming(self._path):
            return create(self._path, json.dumps(asdict(self._owner)))

    def _remove(self, stale: Owner | None) -> None:
        """Moves away the record that was read, None for a torn one. Of all that try, one succeeds; another may find
        that one's new record in its hands, and puts it back."""
        aside = self._path.with_name(f".{self._owner.token}.stale")
        with blaming(self._path), suppress(FileNotFoundError):
            os.rename(self._path, aside)
            moved = read_owner(aside)
            if moved is not None and (stale is None or moved.token != stale.token):
                create(self._path, aside.read_text(encoding="utf-8"))
            aside.unlink()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            if self.is_lost:
                return
            beating = Owner(**{**asdict(self._owner), "heartbeat": time.time()})
            try:
                replace(self._path, json.dumps(asdict(beating)))
            except OSError:
                continue  # a full disk is the writer's to tell


def read_owner(path: Path) -> Owner | None:
    """None where there is no record, or none of ours. Raises ``OSError`` where it cannot be read."""
    try:
        return Owner(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def owners(root: Path) -> Iterator[Owner]:
    """All that have a record, stale ones too. Raises ``OutputError`` for one that cannot be read."""
    folder = root / FOLDER
    for path in sorted(folder.glob("*.owner.json")) if folder.is_dir() else ():
        with blaming(path, "read"):
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
