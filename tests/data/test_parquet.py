"""Files, columns, positions and errors of Parquet input."""

import os
import re
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import photon.data.parquet
from photon.data.parquet import ParquetSource
from photon.errors import ImageError, InputError, UsageError
from photon.images.decode import DecodePolicy, decode

from .pictures import pictures


def write(path: Path, count: int, first: int = 0, group: int = 4, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    images = pa.array(pictures(first + count)[first:], pa.binary())
    numbers = pa.array(range(first, first + count), pa.int64())
    pq.write_table(pa.table({"image": images, "n": numbers, **columns}), path, row_group_size=group)
    return path


def ids(source: ParquetSource) -> list[str]:
    return [row.row_id for row in source.rows()]


def test_natural_order_and_no_file_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for n in (10, 2, 1):
        write(tmp_path / f"data/part-{n}.parquet", 1)
    write(tmp_path / "data/deeper/part-3.parquet", 1)
    want = [f"data/part-{n}.parquet:0:0" for n in (1, 2, 10)]
    assert ids(ParquetSource(["data/*.parquet"], image="image")) == want
    assert ids(ParquetSource(["./data/part-2.parquet", "data/*.parquet"], image="image")) == [want[1], want[0], want[2]]
    twice = ParquetSource(["data/*.parquet", f"{tmp_path}/data/*.parquet"], image="image")
    assert ids(twice) == want
    assert len(ids(ParquetSource(["data/**/*.parquet"], image="image"))) == 4
    write(tmp_path / "odd[1].parquet", 1)
    assert ids(ParquetSource(["odd[1].parquet"], image="image")) == ["odd[1].parquet:0:0"]


def test_urls(tmp_path):
    memory = fsspec.filesystem("memory")
    for n in (10, 9):
        memory.pipe(f"/rows/{n}.parquet", write(tmp_path / "a.parquet", 5, first=n).read_bytes())
    source = ParquetSource(["memory://rows/*.parquet"], image="image", columns=["n"])
    assert [row.columns["n"] for row in source.rows(7)] == [9, 10, 11, 12, 13, 10, 11]
    assert ids(source)[0] == "memory:///rows/9.parquet:0:0"
    assert ids(ParquetSource(["memory:///rows/9.parquet"], image="image")) == ids(source)[:5]
    with pytest.raises(UsageError, match="nothing matches"):
        ParquetSource(["memory://none/*.parquet"], image="image")
    with pytest.raises(InputError, match=r"cannot read memory://none\.parquet"):
        ParquetSource(["memory://none.parquet"], image="image")
    with pytest.raises(UsageError, match=r"cannot open 'nonsense://a\.parquet'"):
        ParquetSource(["nonsense://a.parquet"], image="image")


def test_names_with_dots(tmp_path):
    rows = {"image.png": pictures(2), "image": ["a", "b"], "image.txt": ["c", "d"]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    source = ParquetSource([str(tmp_path / "a.parquet")], image="image.png", columns=["image", "image.txt"])
    assert [row.columns for row in source.rows()][1] == {"image": "b", "image.txt": "d"}
    assert [row.image.source for row in source.rows()] == pictures(2)


def test_patterns_that_match_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.parquet", 1)
    for pattern, message in {"b*.parquet": "no file matches 'b.*parquet'", "b.parquet": "no file 'b.parquet'"}.items():
        with pytest.raises(UsageError, match=message):
            ParquetSource(["a.parquet", pattern], image="image")
    with pytest.raises(UsageError, match="is a folder"):
        ParquetSource(["."], image="image")
    with pytest.raises(UsageError, match="no files"):
        ParquetSource([], image="image")


def test_ids_positions_and_columns(tmp_path):
    file = write(tmp_path / "a.parquet", 6, key=["a", None, "c", "d", "e", "f"], label=[0, 1, None, 0, 1, 0])
    source = ParquetSource([str(file)], image="image", id="key", columns=["label", "n"])
    rows = list(source.rows())
    assert [row.row_id for row in rows] == ["a", f"{file}:0:1", "c", "d", "e", "f"]
    assert [(row.ref.row_group, row.ref.row) for row in rows] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    assert [row.columns for row in rows][2] == {"label": None, "n": 2}
    assert [row.row_id for row in ParquetSource([str(file)], image="image", id="n").rows()] == list("012345")
    assert source.schema.names == ["image", "n", "key", "label"]
    assert source.count() == 6


def test_null_empty_and_path_cells(tmp_path):
    cells = [
        None,
        {"bytes": b"", "path": None},
        {"bytes": None, "path": None},
        {"bytes": b"x", "path": "ignored.png"},
        {"bytes": None, "path": "sub/a.png"},
        {"bytes": None, "path": "/abs/a.png"},
        {"bytes": None, "path": ""},
        {"bytes": None, "path": "https://example.com/a.png"},
    ]
    pq.write_table(pa.table({"image": cells}), tmp_path / "a.parquet")
    images = [row.image for row in ParquetSource([str(tmp_path / "a.parquet")], image="image").rows()]
    sources = [image if image is None else image.source for image in images]
    there = f"{tmp_path}/sub/a.png"
    assert sources[:-1] == [None, b"", None, b"x", there, "/abs/a.png", None]
    assert (sources[-1].code, sources[-1].url) == ("IMAGE_MISSING", "https://example.com/a.png")
    with pytest.raises(ImageError, match=r"is at https://example\.com/a\.png; .* write input\.urls: \{fetch: true\}"):
        decode(sources[-1], DecodePolicy())


def test_wrong_columns_name_what_is_there(tmp_path):
    file = str(write(tmp_path / "a.parquet", 2, img_path=["x", "y"]))
    with pytest.raises(UsageError, match=rf"{file} has no column 'imag'; did you mean 'image'\? .*image, n, img_path"):
        ParquetSource([file], image="imag")
    with pytest.raises(UsageError, match=r"no column 'zzz'\. "):
        ParquetSource([file], image="image", columns=["zzz"])
    with pytest.raises(UsageError, match=rf"column 'n' of {file} is int64; .*image \(binary\)"):
        ParquetSource([file], image="n")


def test_a_later_file_without_the_column(tmp_path):
    write(tmp_path / "1.parquet", 2, label=[1, 2])
    other = write(tmp_path / "2.parquet", 2)
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image", columns=["label"])
    with pytest.raises(UsageError, match=f"{other} has no column 'label'"):
        source.count()
    rows = source.rows()
    assert [next(rows).columns["label"], next(rows).columns["label"]] == [1, 2]
    with pytest.raises(UsageError, match=f"{other} has no column 'label'"):
        next(rows)
    write(tmp_path / "2.parquet", 2, label=[None, None])  # of no type
    assert ParquetSource([str(tmp_path / "*.parquet")], image="image", columns=["label"]).count() == 4
    write(tmp_path / "2.parquet", 2, label=["1", "2"])
    with pytest.raises(UsageError, match="is string, but int64 in the first file"):
        ParquetSource([str(tmp_path / "*.parquet")], image="image", columns=["label"]).count()


def test_a_corrupt_file_is_named(tmp_path):
    good = write(tmp_path / "1.parquet", 8)
    bad = tmp_path / "2.parquet"
    bad.write_bytes(good.read_bytes()[:-200])
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image")
    with pytest.raises(InputError, match=f"cannot read {bad}"):
        source.count()
    with pytest.raises(InputError, match=f"cannot read {bad}"):
        list(source.rows())
    with pytest.raises(InputError, match=f"cannot read {bad}"):
        ParquetSource([str(bad)], image="image")
    data = bytearray(good.read_bytes())
    data[4:400] = b"\xff" * 396  # the footer is whole, the pages are not
    bad.write_bytes(data)
    with pytest.raises(InputError, match=f"cannot read {bad}"):
        list(ParquetSource([str(bad)], image="image").rows())
    bad.unlink()
    with pytest.raises(InputError, match=f"cannot read {bad}"):
        source.count()


def test_errors_of_the_reader_of_rows_are_its_own(tmp_path):
    file = write(tmp_path / "1.parquet", 8)
    rows = ParquetSource([str(file)], image="image").rows()
    next(rows)
    with pytest.raises(KeyError):
        rows.throw(KeyError("theirs"))


def test_only_needed_columns_are_read_in_bounded_pieces(tmp_path, monkeypatch):
    big = [bytes([n]) * (1 << 20) for n in range(64)]
    table = pa.table({"image": big, "heavy": big, "n": list(range(64))})
    # A page per row: what is read at least is a page, and by default a page has 1024 rows or a whole group.
    layout = {"row_group_size": 64, "compression": "none", "use_dictionary": False, "write_batch_size": 1}
    pq.write_table(table, tmp_path / "a.parquet", **layout)
    monkeypatch.setattr(photon.data.parquet, "_BATCH_BYTES", 8 << 20)
    before, peak = pa.total_allocated_bytes(), 0
    for row in ParquetSource([str(tmp_path / "a.parquet")], image="image", columns=["n"]).rows():
        assert row.columns.keys() == {"n"}
        assert row.image.source == big[row.index]
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < 24 << 20  # of 128 MiB


def test_start_skips_files_that_were_counted(tmp_path):
    for n in range(3):
        write(tmp_path / f"{n}.parquet", 5, first=5 * n)
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image", columns=["n"])
    assert source.count() == 15
    (tmp_path / "0.parquet").write_bytes(b"gone")
    assert [row.columns["n"] for row in source.rows(4, start=9)] == [9, 10, 11, 12]
    assert list(source.rows(start=15)) == []
    assert list(source.rows(0, start=6)) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(sum),
    group=st.integers(1, 4),
    start=st.integers(0, 12),
    limit=st.none() | st.integers(0, 12),
)
def test_files_and_row_groups_do_not_change_the_rows(tmp_path, sizes, group, start, limit):
    total = sum(sizes)
    for old in tmp_path.glob("*.parquet"):
        old.unlink()
    first = 0
    for n, size in enumerate(sizes):
        write(tmp_path / f"{n}.parquet", size, first, group)
        first += size
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image", id="n", columns=["n"])
    want = [(n, str(n), data, {"n": n}) for n, data in enumerate(pictures(total))]
    if start % 2:
        assert source.count() == total  # known sizes or not: it makes no difference
    stop = None if limit is None else start + limit
    got = [(row.index, row.row_id, row.image.source, row.columns) for row in source.rows(limit, start=start)]
    assert got == want[start:stop]


def test_a_cell_that_cannot_be_read_fails_its_row_alone(tmp_path):
    text = pa.array([b"a"] * 5 + [b"\xff"] + [b"b"] * 3, pa.binary()).view(pa.string())
    when = pa.array([0] * 7 + [10**15] + [0], pa.int64()).view(pa.timestamp("ms"))  # 31,688 years on
    path = write(tmp_path / "a.parquet", 9, text=text, when=when)
    source = ParquetSource([str(path)], image="image", id="text", columns=["n", "text", "when"])
    rows = list(source.rows())
    assert [row.columns["n"] for row in rows] == list(range(9))
    assert [row.columns["text"] for row in rows] == ["a"] * 5 + [None] + ["b"] * 3
    assert [row.columns["when"] is None for row in rows] == [n == 7 for n in range(9)]
    assert (rows[5].row_id, rows[7].row_id) == (f"{path}:1:1", "b")
    assert [n for n, row in enumerate(rows) if row.failure] == [5, 7]
    assert {row.failure.code for row in (rows[5], rows[7])} == {"CELL_UNREADABLE"}
    assert re.match("column 'text' cannot be read: .*utf-8", rows[5].failure.message)
    assert re.match("column 'when' cannot be read: .*range", rows[7].failure.message)
    with pytest.raises(ImageError, match="column 'text' cannot be read") as raised:
        decode(rows[5].image.source, DecodePolicy())
    assert raised.value.code == "CELL_UNREADABLE"


def test_nested_and_dictionary_columns(tmp_path):
    rows = {
        "image": pa.array([{"bytes": data, "path": None} for data in pictures(4)]),
        "kind": pa.array(["cat", None, "dog", "cat"]).dictionary_encode(),
        "place": pa.array([{"lat": 1.5, "tags": ["a", "b"]}, None, {"lat": None, "tags": []}, {"lat": 2.0}]),
        "path": pa.array(["a", "b", "a", "b"]).dictionary_encode(),
    }
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=3)
    source = ParquetSource([str(tmp_path / "a.parquet")], image="image", id="kind", columns=["kind", "place"])
    found = list(source.rows())
    assert [row.columns["kind"] for row in found] == ["cat", None, "dog", "cat"]
    assert [row.row_id for row in found] == ["cat", f"{tmp_path}/a.parquet:0:1", "dog", "cat"]
    want = [{"lat": 1.5, "tags": ["a", "b"]}, None, {"lat": None, "tags": []}, {"lat": 2.0, "tags": None}]
    assert [row.columns["place"] for row in found] == want
    assert [row.image.source for row in found] == pictures(4)
    paths = [row.image.source for row in ParquetSource([str(tmp_path / "a.parquet")], image="path").rows()]
    assert paths == [f"{tmp_path}/{name}" for name in "abab"]


def test_paths_beside_a_remote_file(tmp_path):
    memory = fsspec.filesystem("memory")
    cells = ["pictures/0.png", "pictures/none.png", "pictures/1.png"]
    pq.write_table(pa.table({"image": cells}), tmp_path / "a.parquet")
    memory.pipe("/beside/a.parquet", (tmp_path / "a.parquet").read_bytes())
    for n, data in enumerate(pictures(2)):
        memory.pipe(f"/beside/pictures/{n}.png", data)
    first, gone, last = ParquetSource(["memory://beside/a.parquet"], image="image").rows()
    assert [first.image.source, last.image.source] == pictures(2)
    assert gone.failure.code == "IMAGE_MISSING"
    assert "beside/pictures/none.png" in gone.failure.message


def write_large_group(path: Path, rows: int) -> None:
    """A row group of ``rows`` MiB, in which all pictures are one: it takes a MiB of memory to write."""
    one = pa.array([bytes(1 << 20)] * 64)
    cells = pa.chunked_array([one] * (rows // 64))
    table = pa.table({"image": cells, "n": list(range(rows))})
    pq.write_table(table, path, row_group_size=rows, compression="zstd", use_dictionary=False)


def test_a_large_row_group_is_warned_about_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(photon.data.parquet, "_LARGE_GROUP_BYTES", 64 << 20)
    for n in range(2):
        write_large_group(tmp_path / f"{n}.parquet", 128)
    write(tmp_path / "small.parquet", 4)
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image")
    assert source.count() == 2 * 128 + 4
    assert [record.message.split(":")[0] for record in caplog.records] == [f"{tmp_path}/0.parquet"]
    assert "row group 0 holds 0.1 GiB, which is read in slices" in caplog.text
    caplog.clear()
    ParquetSource([str(tmp_path / "small.parquet")], image="image").count()
    assert not caplog.records


@pytest.mark.slow
def test_a_row_group_beyond_two_gib_is_read_in_slices(tmp_path, caplog):
    write_large_group(tmp_path / "a.parquet", 2112)
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).total_byte_size > 1 << 31
    before, peak, seen = pa.total_allocated_bytes(), 0, []
    for row in ParquetSource([str(tmp_path / "a.parquet")], image="image", id="n").rows():
        assert len(row.image.source) == 1 << 20
        seen.append(row.row_id)
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == [str(n) for n in range(2112)]
    assert peak < 256 << 20
    assert "row group 0 holds 2.1 GiB" in caplog.text


@pytest.mark.slow
def test_twenty_thousand_files(tmp_path):
    data = write(tmp_path / "0.parquet", 2).read_bytes()
    for n in range(1, 20_000):
        (tmp_path / f"{n}.parquet").write_bytes(data)
    source = ParquetSource([str(tmp_path / "*.parquet")], image="image")
    assert source.count() == 40_000
    assert [row.row_id for row in source.rows(3, start=39_997)] == [
        f"{tmp_path}/19998.parquet:0:1",
        f"{tmp_path}/19999.parquet:0:0",
        f"{tmp_path}/19999.parquet:0:1",
    ]
    assert len(os.listdir("/proc/self/fd")) < 200, "files are closed again"
