"""WebDataset tars: samples, columns, broken members, and that a tar is not read to be counted."""

import io
import json
import logging
import os
import tarfile
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import photon.data.webdataset
from photon.data.webdataset import WebDatasetSource
from photon.errors import InputError, UsageError

from .pictures import picture, pictures
from .tars import write_tar


def sample(n: int, **more: bytes) -> list[tuple[str, bytes]]:
    fields = {"caption": f"picture {n}", "n": n, "tags": ["a"] * n, "place": {"lat": n}}
    parts = {"png": picture(n), "json": json.dumps(fields).encode(), "txt": b"text %d" % n, "cls": b"%d" % n, **more}
    return [(f"train/{n:04d}.{name}", data) for name, data in parts.items()]


def samples(first: int, last: int) -> list[tuple[str, bytes]]:
    return [member for n in range(first, last) for member in sample(n)]


def test_samples_in_the_order_of_files_and_members(tmp_path):
    write_tar(tmp_path / "s-10.tar", samples(5, 7))
    write_tar(tmp_path / "s-9.tar", samples(3, 5) + samples(0, 3))
    columns = ["txt", "cls", "json", "json.caption", "json.tags", "json.place", "png"]
    source = WebDatasetSource([str(tmp_path / "*.tar")], id="__key__", columns=columns)
    rows = list(source.rows())
    order = [3, 4, 0, 1, 2, 5, 6]
    assert [row.row_id for row in rows] == [f"train/{n:04d}" for n in order]
    assert [row.image.source for row in rows] == [picture(n) for n in order]
    assert [row.ref.position for row in rows][4:6] == [f"{tmp_path}/s-9.tar:0:4", f"{tmp_path}/s-10.tar:0:0"]
    assert rows[0].columns == {
        "txt": "text 3",
        "cls": 3,
        "json": '{"caption": "picture 3", "n": 3, "tags": ["a", "a", "a"], "place": {"lat": 3}}',
        "json.caption": "picture 3",
        "json.tags": ["a", "a", "a"],
        "json.place": '{"lat": 3}',  # fields of their own: as JSON
        "png": picture(3),
    }
    assert source.schema.field("json.n").type == pa.int64()
    assert source.schema.field("json.tags").type == pa.list_(pa.string())
    assert source.count() == 7
    assert [row.row_id[-1] for row in source.rows(3, start=3)] == ["1", "2", "5"]
    assert [row.row_id[-1] for row in WebDatasetSource([str(tmp_path / "*.tar")], id="__key__").rows(1, start=6)] == [
        "6"
    ]


def test_which_member_is_the_picture(tmp_path):
    members = [
        ("a.txt", b"x"),
        ("a.right.JPG", b"right"),
        ("a.left.png", b"left"),
        ("b.left.png", b"b"),
        ("c.txt", b"x"),
    ]
    members.append(("c.n.cls", b"1"))
    path = str(write_tar(tmp_path / "a.tar", members))
    first = [row.image and row.image.source for row in WebDatasetSource([path]).rows()]
    assert first == [b"right", b"b", None]
    named = [row.image and row.image.source for row in WebDatasetSource([path], image="right.jpg").rows()]
    assert named == [b"right", None, None]
    with pytest.raises(UsageError, match=r"no column 'jpg'.*right\.jpg"):
        WebDatasetSource([path], image="jpg")
    with pytest.raises(UsageError, match=r"column 'n\.cls' of .* is int64"):
        WebDatasetSource([path], image="n.cls")


def test_members_that_belong_to_no_sample(tmp_path, caplog):
    path = write_tar(tmp_path / "a.tar", [("._a.png", b"x"), ("a.png", b"1"), ("d/.hidden", b"x"), ("README", b"x")])
    with tarfile.open(path, "a") as tar:
        for name, kind in (("d", tarfile.DIRTYPE), ("b.png", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(name)
            member.type = kind
            tar.addfile(member)
    with caplog.at_level(logging.INFO):
        source = WebDatasetSource([str(path)], id="__key__")
    assert [row.row_id for row in source.rows()] == ["a"]
    assert caplog.messages == [f"{path}: 1 samples; left out: 4 members that belong to none"]


def test_a_member_that_comes_twice_is_two_rows(tmp_path):
    members = [("a.png", b"1"), ("a.png", b"2"), ("a.txt", b"x"), ("b.png", b"3"), ("a.png", b"4")]
    source = WebDatasetSource([str(write_tar(tmp_path / "a.tar", members))], id="__key__", columns=["txt"])
    found = [(row.row_id, row.image.source, row.columns["txt"]) for row in source.rows()]
    assert found == [("a", b"1", None), ("a", b"2", "x"), ("b", b"3", None), ("a", b"4", None)]


def test_cells_that_cannot_be_read_fail_their_rows(tmp_path):
    broken = [
        sample(1),
        sample(2, txt=b"\xff"),
        sample(3, cls=b"three"),
        sample(4, json=b"{"),
        sample(5, json=b'{"n": "five"}'),
        sample(6, json=b"[1]"),
        sample(7, json=b"{}", txt="größer".encode()),
    ]
    write_tar(tmp_path / "1.tar", samples(0, 1))
    write_tar(tmp_path / "2.tar", [member for members in broken for member in members])
    source = WebDatasetSource([str(tmp_path / "*.tar")], id="__key__", columns=["txt", "cls", "json.n"])
    rows = list(source.rows())
    told = [row.failure.message if row.failure else None for row in rows]
    assert told[0] is told[1] is told[7] is None
    assert told[2].startswith("column 'txt' cannot be read: 'utf-8' codec")
    assert told[3].startswith("column 'cls' cannot be read: invalid literal for int")
    assert told[4].startswith("column 'json.n' cannot be read: the sample's json is broken")
    assert told[5].startswith("column 'json.n' cannot be read: it is not int64, as in the first tar")
    assert told[6] == "column 'json.n' cannot be read: the sample's json is broken: it is no object of fields"
    assert rows[7].columns == {"txt": "größer", "cls": 7, "json.n": None}
    assert {row.failure.code for row in rows if row.failure} == {"CELL_UNREADABLE"}
    assert [row.failure for row in WebDatasetSource([str(tmp_path / "*.tar")], columns=["json"]).rows()] == [None] * 8


def test_a_part_that_a_later_tar_lacks_is_null(tmp_path):
    write_tar(tmp_path / "1.tar", samples(0, 1))
    write_tar(tmp_path / "2.tar", [("x.png", picture(1)), ("x.npy", b"more")])
    source = WebDatasetSource([str(tmp_path / "*.tar")], columns=["txt", "json.caption"])
    assert [row.columns for row in source.rows()][1] == {"txt": None, "json.caption": None}
    with pytest.raises(UsageError, match="no column 'npy'"):
        WebDatasetSource([str(tmp_path / "*.tar")], columns=["npy"])


def test_long_and_odd_names(tmp_path):
    names = ["ü/" + "long" * 60 + ".png", "a b.png", "./c.png", "v1.2/d.png"]
    write_tar(tmp_path / "a.tar", [(name, picture(n)) for n, name in enumerate(names)])
    rows = list(WebDatasetSource([str(tmp_path / "a.tar")], id="__key__").rows())
    assert [row.row_id for row in rows] == [name.removesuffix(".png") for name in names]
    assert [row.image.source for row in rows] == pictures(4)
    with tarfile.open(tmp_path / "b.tar", "w", format=tarfile.GNU_FORMAT, encoding="latin-1") as tar:
        member = tarfile.TarInfo("é.png")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    assert [row.row_id for row in WebDatasetSource([str(tmp_path / "b.tar")], id="__key__").rows()] == [r"\xe9"]


def test_broken_tars_are_named(tmp_path):
    path = write_tar(tmp_path / "a.tar", samples(0, 20))
    whole = path.read_bytes()
    members = len(whole.rstrip(b"\0")) // 512 * 512 + 512
    # In a header, in a member, between two members; a header that is no header; a second tar behind the first.
    for broken in (
        whole[: 512 * 40 + 100],
        whole[: 512 * 41 + 3],
        whole[:members],
        whole[:20480] + b"x" + whole[20481:],
    ):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=f"cannot read {path}"):
            WebDatasetSource([str(path)])
    path.write_bytes(whole + whole)
    with pytest.raises(InputError, match="there is more behind its end"):
        WebDatasetSource([str(path)])
    path.write_bytes(b"no tar" * 1000)
    with pytest.raises(InputError, match=f"cannot read {path}"):
        WebDatasetSource([str(path)])
    packed = write_tar(tmp_path / "b.tar.gz", samples(0, 2), "w:gz")
    with pytest.raises(UsageError, match=r"is compressed, .*decompress it first"):
        WebDatasetSource([str(packed)])
    path.write_bytes(whole)
    source = WebDatasetSource([str(path)])
    assert source.count() == 20
    path.write_bytes(whole[:3000])
    with pytest.raises(InputError, match="it ends inside of a member"):
        list(source.rows())


def test_a_tar_is_counted_by_its_headers(tmp_path):
    """Five members of 4 GiB each, of which the disk holds nothing."""
    path = tmp_path / "a.tar"
    with open(path, "wb") as file:
        for n in range(5):
            member = tarfile.TarInfo(f"{n}.bin")
            member.size = 4 << 30
            file.write(member.tobuf(tarfile.PAX_FORMAT))
            file.seek(member.size, os.SEEK_CUR)
        small = tarfile.TarInfo("last.png")
        small.size = len(picture(3))
        file.write(small.tobuf() + picture(3) + bytes(512 - small.size % 512 + 1024))
    source = WebDatasetSource([str(path)], id="__key__")
    assert source.count() == 6
    (row,) = source.rows(1, start=5)
    assert (row.row_id, row.image.source) == ("last", picture(3))


def test_headers_are_read_once(tmp_path, monkeypatch):
    for n in range(3):
        write_tar(tmp_path / f"{n}.tar", samples(n, n + 1))
    indexed: list[str] = []
    index = photon.data.webdataset.index_tar

    def count(file, name):
        indexed.append(Path(name).name)
        return index(file, name)

    monkeypatch.setattr(photon.data.webdataset, "index_tar", count)
    source = WebDatasetSource([str(tmp_path / "*.tar")])
    assert (source.count(), len(list(source.rows())), len(list(source.rows(start=1)))) == (3, 3, 2)
    assert indexed == ["0.tar", "1.tar", "2.tar"]
    monkeypatch.setattr(photon.data.webdataset, "_KEPT_MEMBERS", 8)  # of 12
    assert len(list(source.rows())) == 3
    source = WebDatasetSource([str(tmp_path / "*.tar")])
    assert (source.count(), len(list(source.rows()))) == (3, 3)
    assert len(indexed) > 6


def test_urls(tmp_path):
    memory = fsspec.filesystem("memory")
    for n in (10, 9):
        memory.pipe(f"/tars/{n}.tar", write_tar(tmp_path / "a.tar", samples(n, n + 2)).read_bytes())
    source = WebDatasetSource(["memory://tars/*.tar"], columns=["cls"])
    assert [(row.columns["cls"], row.image.source) for row in source.rows()] == [
        (n, picture(n)) for n in (9, 10, 10, 11)
    ]
    assert list(source.files) == []
