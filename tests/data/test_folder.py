"""Folders of pictures: order, what is left out, names, links."""

import logging
import os

import pyarrow as pa
import pytest

from photon.data.folder import FolderSource
from photon.errors import UsageError
from photon.images.decode import DecodePolicy, decode

from .pictures import digest, picture

ORDER = ["2.png", "a/1.JPG", "a/3.png", "a/20.png", "a10/b/c/0.webp", "a-b/0.png", "b.png", "z9.tif", "z10.tif"]


def fill(folder, names):
    for n, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(n))


def test_every_level_in_natural_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "photos", ORDER)
    source = FolderSource(["photos"], id="file_name", columns=["folder"])
    rows = list(source.rows())
    assert [row.row_id for row in rows] == ORDER
    assert [row.columns["folder"] for row in rows] == ["", "a", "a", "a", "a10/b/c", "a-b", "", "", ""]
    assert [row.ref.position for row in rows] == [f"photos/{name}:0:0" for name in ORDER]
    assert [row.index for row in rows] == list(range(9))
    info = [decode(row.image.source, DecodePolicy())[1] for row in rows]
    assert [picture_info.sha256 for picture_info in info] == [digest(picture(n)) for n in range(9)]
    assert source.count() == 9
    assert list(source.files) == [f"photos/{name}" for name in ORDER]
    assert [row.row_id for row in source.rows(3, start=2)] == ORDER[2:5]
    assert list(source.rows(5, start=9)) == list(source.rows(0)) == []
    assert source.schema.names == ["image", "file_name", "folder"]
    assert [row.row_id for row in FolderSource(["photos"]).rows(1)] == ["photos/2.png:0:0"]


def test_what_is_no_picture_is_left_out_and_counted(tmp_path, caplog):
    fill(tmp_path, ["a.png", "deep/b.jpeg"])
    for name in ("notes.txt", "deep/labels.json", "deep/Thumbs.db", ".a.png", "deep/._b.jpeg", "LICENSE"):
        (tmp_path / name).write_text("x")
    fill(tmp_path / ".thumbnails", ["a.png", "b.png"])
    with caplog.at_level(logging.INFO):
        rows = list(FolderSource([str(tmp_path)], id="file_name").rows())
    assert [row.row_id for row in rows] == ["a.png", "deep/b.jpeg"]
    assert caplog.messages == [f"{tmp_path}: 2 pictures; left out: 3 hidden, 4 not named as a picture"]


def test_links_are_followed_but_not_in_circles(tmp_path):
    fill(tmp_path / "photos/a", ["1.png"])
    fill(tmp_path / "elsewhere", ["2.png"])
    (tmp_path / "photos/b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos/a/up").symlink_to(tmp_path / "photos")
    (tmp_path / "photos/c.png").symlink_to(tmp_path / "gone.png")
    rows = list(FolderSource([str(tmp_path / "photos")], id="file_name").rows())
    assert [row.row_id for row in rows] == ["a/1.png", "b/2.png", "c.png"]


def test_names_that_are_not_utf_8(tmp_path):
    fill(tmp_path, ["a/Été/ü.png"])
    with open(os.fsencode(tmp_path) + b"/z\xff.png", "wb") as file:
        file.write(picture(7))
    first, last = FolderSource([str(tmp_path)], id="file_name").rows()
    assert first.row_id == "a/Été/ü.png"
    assert last.row_id == r"z\xff.png"
    assert pa.array([last.row_id, last.ref.file]).type == pa.string(), "a name that can be written"
    assert decode(last.image.source, DecodePolicy())[1].sha256 == digest(picture(7))


def test_several_folders(tmp_path):
    fill(tmp_path / "b", ["1.png"])
    fill(tmp_path / "a", ["1.png"])
    source = FolderSource([str(tmp_path / "b"), str(tmp_path / "a")])
    assert [row.ref.file for row in source.rows()] == [f"{tmp_path}/b/1.png", f"{tmp_path}/a/1.png"]
    with pytest.raises(UsageError, match="lie in one another"):
        FolderSource([str(tmp_path / "b"), str(tmp_path)])


def test_wrong_folders(tmp_path):
    with pytest.raises(UsageError, match=r"none is no folder"):
        FolderSource([str(tmp_path / "none")])
    with pytest.raises(UsageError, match=r"holds no picture; pictures are files named .* \.png"):
        FolderSource([str(tmp_path)])
    fill(tmp_path, ["a.png"])
    with pytest.raises(UsageError, match=r"a\.png is a file"):
        FolderSource([str(tmp_path / "a.png")])
    with pytest.raises(UsageError, match="not on this machine"):
        FolderSource(["hf://datasets/a/b"])
    with pytest.raises(UsageError, match=r"no column 'label'\. Its columns are image, file_name, folder"):
        FolderSource([str(tmp_path)], columns=["label"])
    with pytest.raises(UsageError, match="column 'folder' of a folder holds no pictures"):
        FolderSource([str(tmp_path)], image="folder")


def test_links_to_themselves(tmp_path):
    fill(tmp_path, ["a.png"])
    (tmp_path / "b.png").symlink_to("b.png")
    (tmp_path / "c").symlink_to("c")
    assert [row.ref.file for row in FolderSource([str(tmp_path)]).rows()] == [f"{tmp_path}/a.png", f"{tmp_path}/b.png"]
