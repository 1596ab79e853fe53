"""Files in groups by a plan: what has changed since is told, what has grown is read, and no row is looked for twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from photon.data.folder import FolderSource
from photon.data.grouped import GroupedFiles
from photon.data.parquet import ParquetSource
from photon.data.row import Source
from photon.data.unit import Unit
from photon.data.webdataset import WebDatasetSource
from photon.errors import UsageError

from .pictures import pictures
from .tars import write_tar


def write(path: Path, groups: Sequence[int], first: int = 0) -> None:
    images, start = pictures(first + sum(groups))[first:], 0
    with pq.ParquetWriter(path, pa.schema({"image": pa.binary()})) as writer:
        for size in groups:
            writer.write_table(pa.table({"image": pa.array(images[start : start + size], pa.binary())}))
            start += size


def planned(path: Path, units: Sequence[Unit] | None = None) -> ParquetSource:
    return ParquetSource([str(path)], image="image", units=units)


def images(source: Source, start: int = 0) -> list[object]:
    return [row.image.source for row in source.rows(start=start) if row.image is not None]


@pytest.mark.parametrize(
    "change",
    [lambda path: write(path, (3, 2), first=7), lambda path: write(path, (3, 1)), lambda path: write(path, (3, 3, 1))],
    ids=["other pictures", "a shorter group", "another group"],
)
def test_a_changed_file_is_told_when_it_is_opened(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Before and after the source was made: the first file is opened for its schema."""
    path = tmp_path / "a.parquet"
    write(path, (3, 2))
    units = planned(path).units()
    source = planned(path, units)
    change(path)
    told = r"a\.parquet changed since the plan was made, .*; put the file back, .* with --fresh"
    with pytest.raises(UsageError, match=told):
        images(source)
    with pytest.raises(UsageError, match=told):
        planned(path, units)


def test_the_same_file_at_another_time(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, (3, 2))
    units = planned(path).units()
    os.utime(path, (1, 1))
    assert images(planned(path, units)) == pictures(5)


def test_a_file_that_grew_is_read_as_planned(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, (3, 2))
    units = planned(path).units()
    write(path, (3, 2, 4))
    assert images(planned(path, units)) == pictures(5)


def test_a_changed_tar(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, [("1.png", pictures(1)[0])])
    units = WebDatasetSource([str(path)]).units()
    write_tar(path, [("1.png", b"another")])
    with pytest.raises(UsageError, match=r"a\.tar changed since the plan was made"):
        images(WebDatasetSource([], units=units))


def test_a_changed_picture_in_a_folder(tmp_path: Path) -> None:
    """It is told at its own row; one that is gone is a row that fails."""
    for n, data in enumerate(pictures(4)):
        (tmp_path / f"{n}.png").write_bytes(data)
    units = FolderSource([str(tmp_path)]).units()
    (tmp_path / "2.png").write_bytes(b"another")
    (tmp_path / "0.png").unlink()
    rows = FolderSource([], units=units).rows()
    assert [next(rows).index for _ in range(2)] == [0, 1]
    with pytest.raises(UsageError, match=r"2\.png changed since the plan was made"):
        next(rows)
    assert next(FolderSource([], units=units).rows(start=3)).index == 3


@pytest.mark.parametrize("suffix", ["parquet", "tar"])
def test_a_name_that_is_not_utf_8(tmp_path: Path, suffix: str) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"b\xff." + suffix.encode())
    kind = ParquetSource if suffix == "parquet" else WebDatasetSource
    write(tmp_path / "a", (1,))
    os.rename(tmp_path / "a", name)
    with pytest.raises(UsageError, match=rf"the name of .*/b\\xff\.{suffix} is not UTF-8; rename the file"):
        kind([str(tmp_path / "*")], image="image")


class Counted(tuple[int, ...]):
    """Sizes of a file's groups, which note when they are gone through."""

    passes = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        Counted.passes += 1
        return super().__iter__()


def test_a_row_is_found_without_walking_through_the_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, (1, 2))
    (unit,) = planned(path).units()
    units = [unit, *(Unit(f"gone-{n}.parquet", Counted((1, 2)), (), None) for n in range(50))]
    source = planned(path, units)
    assert [number for number, _ in map(source._find, (0, 2, 3, 5, 150, 152, 153))] == [0, 0, 1, 1, 50, 50, 51]
    assert [index for _, index in map(source._find, (0, 2, 3, 5, 150, 152, 153))] == [0, 0, 3, 3, 150, 150, 153]
    assert Counted.passes == 50, "each file's groups are added up once"
    assert images(source, start=153) == []


def test_rows_of_files_that_nobody_has_counted(tmp_path: Path) -> None:
    """With an empty one among them: sizes become known as files are read."""
    for n, groups in enumerate(((2, 1), (), (0, 3), (4,))):
        write(tmp_path / f"{n}.parquet", groups, first=(0, 0, 3, 6)[n])
    source: GroupedFiles = planned(tmp_path / "*.parquet")
    for start in (4, 0, 9, 10, 3, 6):
        assert images(source, start) == pictures(10)[start:]
