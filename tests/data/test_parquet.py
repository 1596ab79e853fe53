"""Files, columns, positions and errors of Parquet input."""

from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import photon.data.parquet
from photon.data.parquet import ParquetSource
from photon.errors import InputError, UsageError

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
    assert sources == [None, b"", None, b"x", there, "/abs/a.png", None, "https://example.com/a.png"]


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


def test_a_cell_that_cannot_be_read_is_named(tmp_path):
    text = pa.array([b"a"] * 5 + [b"\xff"] + [b"b"] * 3, pa.binary()).view(pa.string())
    path = write(tmp_path / "a.parquet", 9, text=text)
    source = ParquetSource([str(path)], image="image", columns=["n", "text"])
    with pytest.raises(InputError, match=rf"cannot read column 'text' in row 1 of group 1 of {path}: .*utf-8"):
        list(source.rows())
    assert [row.columns["text"] for row in source.rows(5)] == ["a"] * 5, "a sample ends before the next row"
    assert [row.columns["text"] for row in source.rows(2, start=3)] == ["a"] * 2
    assert list(source.rows(0, start=5)) == []
