"""A file that is made for good: whole or not at all, with hard links or without, whatever the system refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import photon.data.disk
from photon.data.disk import create


def refuse_links(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(photon.data.disk.os, "link", link)


@pytest.mark.parametrize("code", [None, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
def test_the_first_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    if code is not None:
        refuse_links(monkeypatch, code)
    path = tmp_path / "plan.json"
    assert create(path, "first")
    assert not create(path, "second")
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_refuses_is_no_lack_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    refuse_links(monkeypatch, code)
    with pytest.raises(OSError, match=os.strerror(code)):
        create(tmp_path / "plan.json", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file beside fits, and the second one not any more."""
    refuse_links(monkeypatch, errno.EPERM)
    honest, calls = os.fsync, []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(handle)

    monkeypatch.setattr(photon.data.disk.os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "plan.json", "text")
    assert list(tmp_path.iterdir()) == []
