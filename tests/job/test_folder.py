from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from photon.data.unit import Unit
from photon.errors import OutputError
from photon.job.folder import OutputFolder
from photon.job.record import RunRecord
from photon.manifest.load import load_manifest
from photon.plan.ledger import Making
from photon.plan.plan import Plan, Span
from photon.plan.shard import Shard


@pytest.fixture
def used(tmp_path: Path) -> OutputFolder:
    """The folder of an earlier run that was cut off while it wrote."""
    folder = OutputFolder(tmp_path / "out")
    folder.claim(fresh=False)
    for name in ("part-000000.arrow", "part-000001.arrow", ".part-000002.arrow.1f.tmp"):
        (folder.data / name).write_bytes(b"x")
    folder.record.write_text(json.dumps({"photon_batch": "0.1.0"}))
    (folder.root / ".run.json.tmp").write_text("{")
    return folder


def names(folder: OutputFolder) -> list[str]:
    return sorted(str(path.relative_to(folder.root)) for path in folder.root.rglob("*"))


def test_a_new_or_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for root in (tmp_path / "deep" / "new", tmp_path / "empty"):
        folder = OutputFolder(root)
        folder.check(fresh=False)
        folder.claim(fresh=False)
        assert folder.data.is_dir()


def test_checking_touches_nothing(tmp_path: Path) -> None:
    OutputFolder(tmp_path / "new").check(fresh=True)
    assert list(tmp_path.iterdir()) == []


def test_earlier_results_are_kept_unless_fresh(used: OutputFolder) -> None:
    before = names(used)
    with pytest.raises(
        OutputError, match=r"without the plan .*; choose another output\.dir, .* with --fresh"
    ) as caught:
        used.claim(fresh=False)
    assert caught.value.exit_code == 5
    assert names(used) == before
    used.claim(fresh=True)
    assert names(used) == ["data"]
    used.claim(fresh=False)


@pytest.mark.parametrize("name", ["notes.txt", "data/part-1.parquet", "data/deep/x", ".hidden", "part-000000.arrow"])
def test_files_of_others_are_named_and_left_alone(used: OutputFolder, name: str) -> None:
    stranger = used.root / name
    stranger.parent.mkdir(exist_ok=True)
    stranger.write_text("mine")
    before = names(used)
    for fresh in (False, True):
        with pytest.raises(OutputError, match="not ours: ") as caught:
            used.claim(fresh=fresh)
        assert str(used.root / name.replace("/x", "")) in str(caught.value)
    assert names(used) == before


@pytest.mark.parametrize("place", [".", "data", "ledger"])
def test_what_a_file_server_keeps_of_removed_files_is_passed_over(used: OutputFolder, place: str) -> None:
    kept = used.root / place / ".nfs00000000012c03f600000a51"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(b"open still")
    assert list(used.foreign()) == []
    used.claim(fresh=True)
    assert kept.exists(), "to be removed by the one who has it open"
    (used.root / place / ".nfs-notes").write_text("mine")
    assert [path.name for path in used.foreign()] == [".nfs-notes"]


@pytest.mark.parametrize("text", ["{}", "not json", '{"version": 1}', "3"])
def test_a_run_json_of_others_is_a_stranger(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(OutputError, match="not ours"):
        OutputFolder(tmp_path).claim(fresh=True)


def test_a_linked_data_folder_is_a_stranger(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "part-000000.arrow").write_bytes(b"x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "data").symlink_to(elsewhere)
    with pytest.raises(OutputError, match="not ours"):
        OutputFolder(tmp_path / "out").claim(fresh=True)


def test_places_that_cannot_be_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file; name a folder"):
        OutputFolder(tmp_path / "file").check(fresh=False)
    with pytest.raises(OutputError, match="cannot write to"):
        OutputFolder(tmp_path / "file" / "below").claim(fresh=False)


def test_folders_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        OutputError, match=r"cannot look into .*: File name too long; .* choose a shorter output folder"
    ):
        OutputFolder(tmp_path / ("x" * 300)).check(fresh=False)

    def closed(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(OutputError, match=r"cannot look into .*: Permission denied; .* choose another output folder"):
        OutputFolder(tmp_path).claim(fresh=True)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_record_where_folders_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manifest_file: Callable[..., Path], code: int
) -> None:
    """Some network file systems refuse it; a disk that fails is another matter."""
    (tmp_path / "rows.parquet").touch()
    plan = Plan("1f", 4, "parquet", {}, [Unit("rows.parquet", (3,))], [Span(0, 0, 3)])
    record = RunRecord(load_manifest(manifest_file()), {}, Making("m", {}, {}, ""), plan, Shard())
    honest = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        honest(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output") if code == errno.EIO else nullcontext():
        record.write(tmp_path, "running", {})
    assert (tmp_path / "run.json").exists()
