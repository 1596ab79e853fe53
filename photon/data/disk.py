"""What the part files and the run's record have in common on disk: names that last, and the system's refusals told."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from photon.errors import OutputError

#: What a file system without hard links says when it is asked for one.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_ADVICE = {
    errno.ENOSPC: "the disk is full: free space and run again, nothing is lost",
    errno.EDQUOT: "the quota is used up: free space and run again, nothing is lost",
    errno.EFBIG: "the file is too large for the file system or the process limit: write smaller chunks",
    errno.EACCES: "no permission: choose another output folder or change its owner",
    errno.EPERM: "no permission: choose another output folder or change its owner",
    errno.EROFS: "the file system is read-only: choose another output folder",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter output folder",
}


def sync_folder(folder: Path) -> None:
    """Makes the names in ``folder`` last. Raises ``OSError``, but not where the file system has no such thing."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise


def create(path: Path, text: str) -> bool:
    """A new file, there with all of ``text`` or not at all, for good. False where there is one of that name already.
    Raises ``OSError``."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(beside, text)
        try:
            os.link(beside, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _write_new(path, text)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def replace(path: Path, text: str) -> None:
    """``path`` with ``text`` in it, in one step and for good: a reader sees the old or the new. Raises ``OSError``."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(beside, text)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def _write_new(path: Path, text: str) -> None:
    """Whole, or not there."""
    file = open(path, "x", encoding="utf-8")  # noqa: SIM115  one that is there already is not ours to remove
    try:
        with file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def blaming(path: Path, deed: str = "write") -> Iterator[None]:
    """An ``OSError`` inside is an ``OutputError``: ``path`` cannot be written, or whatever the ``deed`` was."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "check the output folder")
        raise OutputError(f"cannot {deed} {path}: {error.strerror or error}; {advice}") from error
