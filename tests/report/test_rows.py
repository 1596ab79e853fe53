"""Rows with their pictures: the right ones, only those, and nothing drawn on what is not what the run saw."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from photon.core import Failure
from photon.data.row import Row, Source
from photon.errors import InputError, UsageError
from photon.images.decode import DecodePolicy
from photon.job.output import RunOutput
from photon.job.sources import open_source
from photon.report import rows as module
from photon.report.rows import sample, shown_rows
from tests.job.inputs import write_parquet
from tests.report.runs import TASKS, encoded, plain, shade, take_back, told_run

Write = Callable[..., Path]


def seen(positions: Sequence[int], root: str = "out") -> list[tuple[int, str, Any]]:
    """(index, row id, the picture's colour or the code of its problem)."""
    made = []
    for row in shown_rows(RunOutput(Path(root)), positions, ["things"]):
        told = row.picture.getpixel((0, 0)) if row.picture else row.problem and row.problem.code
        made.append((row.index, row.cells["row_id"], told))
    return made


def expected(numbers: Sequence[int]) -> list[tuple[int, str, Any]]:
    return [(n, f"row{n}", shade(n)) for n in numbers]


def the_problem(position: int = 1) -> Failure:
    (row,) = shown_rows(RunOutput(Path("out")), [position], [])
    assert row.picture is None
    assert row.problem is not None
    return row.problem


@pytest.fixture
def ran(manifest_file: Write) -> None:
    """Ten rows in chunks of four, two files of row groups of three."""
    for name, numbers in (("rows1", range(6)), ("rows2", range(6, 10))):
        write_parquet(Path(f"{name}.parquet"), [plain(n) for n in numbers], name=[f"row{n}" for n in numbers])
    told_run(manifest_file(input="{parquet: 'rows*.parquet', id: name}", tasks=TASKS))


def test_a_sample_is_one_of_each_stretch() -> None:
    for seed in range(50):
        drawn = sample(1003, 10, seed)
        assert drawn == sample(1003, 10, seed)
        assert all(1003 * n // 10 <= position < 1003 * (n + 1) // 10 for n, position in enumerate(drawn))
    assert len({tuple(sample(1003, 10, seed)) for seed in range(50)}) == 50
    assert {position for seed in range(400) for position in sample(12, 3, seed)} == {*range(12)}


def test_all_rows_where_there_are_no_more() -> None:
    assert sample(5, 5, 3) == sample(5, 90) == [0, 1, 2, 3, 4]
    assert {tuple(sample(6, 5, seed)) for seed in range(20)} == {(0, 1, 2, 3, 4), (0, 1, 2, 3, 5)}
    assert sample(0, 5) == []


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize("positions", [range(10), [9], [2, 3, 4, 6], [0, 9]])
def test_rows_and_pictures_go_together(positions: Sequence[int]) -> None:
    assert RunOutput(Path("out")).count() == 10
    assert seen(positions) == expected(positions)


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize("left", [(0, 2), (0, 1), (0, 1, 2), (1,)])
def test_a_run_that_is_going_on(left: tuple[int, ...]) -> None:
    """Some chunks are not there yet. No chunk crosses the end of a file: they hold four, two and four rows."""
    take_back(*{0, 1, 2} - {*left})
    chunks = [range(4), range(4, 6), range(6, 10)]
    numbers = [n for chunk in left for n in chunks[chunk]]
    assert RunOutput(Path("out")).count() == len(numbers)
    assert seen(range(len(numbers))) == expected(numbers)


def test_parts_in_the_order_of_their_numbers(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [plain(0)] * 2)
    told_run(manifest_file(tasks=TASKS, output="{dir: out, chunk_rows: 1}"))
    moved = Path("out/data/part-1000000.arrow")
    moved.write_bytes(Path("out/data/part-000000.arrow").read_bytes())
    take_back(0)
    output = RunOutput(Path("out"))
    assert [row["row_id"] for row in output.rows(["row_id"])] == ["row1", "row0"]
    with pytest.raises(InputError, match=r"part-1000000\.arrow is not in the plan"):
        list(output.pick([0, 1], ["row_id"]))


def test_rows_that_came_to_the_input_later(manifest_file: Write) -> None:
    """A file that is new, and comes first by its name, is last in the plan."""
    write_parquet(Path("rows2.parquet"), [plain(n) for n in range(5)], name=[f"row{n}" for n in range(5)])
    path = manifest_file(input="{parquet: 'rows*.parquet', id: name}", tasks=TASKS)
    told_run(path)
    write_parquet(Path("rows1.parquet"), [plain(n) for n in range(5, 8)], name=[f"row{n}" for n in range(5, 8)])
    told_run(path, fresh=False)
    assert seen(range(8)) == expected(range(8))


def test_a_part_that_was_lost_is_noticed(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [plain(0)] * 4)
    told_run(manifest_file(tasks=TASKS, output="{dir: out, chunk_rows: 1}"))
    for number in (1, 2):
        Path(f"out/data/part-{number:06}.arrow").unlink()
    with pytest.raises(InputError, match=r"part-000001\.arrow \(and 1 more\) is gone, though the run wrote it"):
        RunOutput(Path("out"))
    for number in (0, 3):
        Path(f"out/data/part-{number:06}.arrow").unlink()
    with pytest.raises(InputError, match=r"part-000000\.arrow \(and 3 more\) is gone, though the run wrote it"):
        RunOutput(Path("out"))


def test_only_what_is_wanted_is_read(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 rows in 200 row groups; three rows, far apart, are three row groups and three pictures."""
    write_parquet(Path("rows.parquet"), [plain(n % 80) for n in range(600)])
    told_run(manifest_file(tasks=TASKS, output="{dir: out, chunk_rows: 50}"))
    groups, pictures = [], []
    batches, decode = pq.ParquetFile.iter_batches, module.decode
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *a, **k: groups.extend(k["row_groups"]) or batches(*a, **k)
    )
    monkeypatch.setattr(module, "decode", lambda *a: pictures.append(a[0]) or decode(*a))
    assert seen([4, 301, 599]) == [(n, f"row{n}", shade(n % 80)) for n in (4, 301, 599)]
    assert groups == [1, 100, 199]
    assert len(pictures) == 3


@pytest.mark.usefixtures("ran")
def test_one_picture_at_a_time() -> None:
    pictures: list[weakref.ref[Image.Image]] = []
    for row in shown_rows(RunOutput(Path("out")), range(10), []):
        assert row.picture is not None
        pictures.append(weakref.ref(row.picture))
        del row
        assert sum(ref() is not None for ref in pictures) <= 1
    assert len(pictures) == 10


def test_failed_rows_are_not_looked_for(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [plain(0), b"broken", None])
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"))
    assert [*RunOutput(Path("out")).failed()] == [1, 2]
    Path("rows.parquet").unlink()
    assert seen([1, 2]) == [(1, "row1", "IMAGE_UNIDENTIFIED"), (2, "row2", "IMAGE_MISSING")]
    assert the_problem(2) == Failure("IMAGE_MISSING", "the image cell is null")


def test_positions_of_failures_are_counted_over_all_parts(manifest_file: Write) -> None:
    bad = {0, 3, 4, 9}
    write_parquet(Path("rows.parquet"), [b"broken" if n in bad else plain(n) for n in range(10)])
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"))
    assert {*RunOutput(Path("out")).failed()} == bad


@pytest.mark.usefixtures("ran")
def test_an_input_that_is_gone() -> None:
    Path("rows1.parquet").unlink()
    Path("rows2.parquet").unlink()
    with pytest.raises(InputError) as caught:
        seen([1])
    told = str(caught.value)
    assert told.startswith("the pictures of out cannot be read again (cannot read rows1.parquet: ")
    assert f"relative paths start from {Path.cwd()}: go to the folder that the run was started in" in told


@pytest.mark.usefixtures("ran")
def test_an_input_that_is_broken() -> None:
    Path("rows1.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(InputError, match=r"the pictures of out cannot be read again \(cannot read rows1\.parquet"):
        seen([1])


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(
    ("image", "name", "code", "message"),
    [
        (b"broken", "row1", "IMAGE_UNIDENTIFIED", "not readable any more: not a picture"),
        (plain(1)[:60], "row1", "IMAGE_TRUNCATED", "not readable any more: the file ends too early"),
        (None, "row1", "IMAGE_MISSING", "the image cell is null now"),
        (plain(2), "row1", "IMAGE_CHANGED", "the picture is not the one that the run saw"),
        (plain(1), "another", "INPUT_CHANGED", "the input holds another row here now, another"),
    ],
    ids=["broken", "cut off", "null", "another picture", "another row"],
)
def test_what_changed_since_the_run(image: bytes | None, name: str, code: str, message: str) -> None:
    rest = range(2, 6)
    write_parquet(
        Path("rows1.parquet"),
        [plain(0), image, *map(plain, rest)],
        name=["row0", name, *(f"row{n}" for n in rest)],
    )
    problem = the_problem(1)
    assert problem.code == code
    assert problem.message.startswith(message)
    assert seen([0, 2]) == expected([0, 2])  # the others are what they were


@pytest.mark.usefixtures("ran")
def test_an_input_that_became_shorter_or_moved() -> None:
    write_parquet(Path("rows2.parquet"), [plain(6)], name=["row6"])
    with pytest.raises(InputError, match=r"rows2\.parquet does not hold the rows any more that it was planned with"):
        seen([9])
    assert seen([5]) == expected([5])
    Path("rows1.parquet").rename("rows3.parquet")
    with pytest.raises(InputError, match="the pictures of out cannot be read again"):
        seen([1])


@pytest.mark.usefixtures("ran")
def test_a_manifest_of_another_version() -> None:
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    record["manifest"]["image"]["gamma"] = 2
    Path("out/run.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json cannot be read \(image\.gamma: .*written by another version"):
        seen([1])


def test_columns_that_are_gone_do_not_matter(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [plain(0)], extra=["x"])
    told_run(manifest_file(input="{parquet: rows.parquet, id: name, keep: [extra]}", tasks=TASKS))
    write_parquet(Path("rows.parquet"), [plain(0)], subject=[["a list"]])
    assert seen([0]) == expected([0])


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize("exif", ["apply", "ignore"])
def test_the_frame_is_the_recorded_one(manifest_file: Write, orientation: int, exif: str) -> None:
    stored = Image.new("RGB", (40, 20), shade(9))
    stored.putpixel((0, 0), (255, 0, 0))
    tag = Image.Exif()
    tag[0x0112] = orientation
    write_parquet(Path("rows.parquet"), [encoded(stored, exif=tag)])
    told_run(manifest_file(tasks=TASKS, image=f"{{exif: {exif}}}"))
    (row,) = shown_rows(RunOutput(Path("out")), [0], [])
    assert row.picture is not None
    # Where the first stored pixel is seen, by the standard: 3 is upside down, 6 needs a right turn, 8 a left one.
    turned = {1: (0, 0), 3: (39, 19), 6: (19, 0), 8: (0, 39)}[orientation if exif == "apply" else 1]
    assert row.picture.getpixel(turned) == (255, 0, 0)
    assert row.picture.size == (row.cells["image"]["width"], row.cells["image"]["height"])
    assert row.cells["image"]["frame"] == {"apply": "oriented", "ignore": "stored"}[exif]


def test_the_policy_is_the_manifest_s(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [encoded(Image.new("RGBA", (9, 9), (0, 0, 0, 0)))])
    told_run(manifest_file(tasks=TASKS, image="{alpha_background: '#102030'}"))
    assert seen([0]) == [(0, "row0", DecodePolicy(alpha_background="#102030").background)]


def test_a_run_without_a_model(manifest_file: Write) -> None:
    from photon.job.run import run
    from photon.manifest.load import load_manifest

    write_parquet(Path("rows.parquet"), [plain(0)])
    run(load_manifest(manifest_file()))
    assert seen([0]) == expected([0])


def test_arrow_input(manifest_file: Write) -> None:
    cells = [{"bytes": plain(n), "path": None} for n in range(9)]
    batches = pa.table({"image": cells, "name": [f"row{n}" for n in range(9)]}).to_batches(max_chunksize=2)
    with pa.OSFile("rows.arrow", "wb") as file, pa.ipc.new_stream(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    tasks = "[{name: things, type: detect, objects: [cat]}]"
    told_run(manifest_file(input="{arrow: rows.arrow, id: name}", tasks=tasks))
    assert seen([0, 5, 8]) == expected([0, 5, 8])


class Stream:
    """A source that does not know how many rows it has, and begins anew at each call."""

    def __init__(self, source: Source) -> None:
        self.started: list[int] = []
        self._source = source

    def count(self) -> None:
        return None

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        self.started.append(start)
        return self._source.rows(limit, start=start)


def test_a_stream_is_read_once_through(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far away is read on to, not begun anew; 599 - 4 rows are far."""
    write_parquet(Path("rows.parquet"), [plain(n % 80) for n in range(600)])
    told_run(manifest_file(tasks="[{name: things, type: detect, objects: [cat]}]", output="{dir: out, chunk_rows: 50}"))
    streams: list[Stream] = []
    monkeypatch.setattr(module, "open_planned", lambda m, p: streams.append(Stream(open_source(m))) or streams[-1])
    assert seen([4, 301, 599]) == [(n, f"row{n}", shade(n % 80)) for n in (4, 301, 599)]
    assert [stream.started for stream in streams] == [[4]]


def test_what_has_to_be_fetched_is_read_alone(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else rows that are only passed over would be fetched from the network, too."""
    write_parquet(Path("rows.parquet"), [plain(n) for n in range(10)])
    tasks = "[{name: things, type: detect, objects: [cat]}]"
    told_run(manifest_file(input="{parquet: rows.parquet, id: name, urls: {fetch: true}}", tasks=tasks))
    asked: list[tuple[int | None, int]] = []

    class Watched(Stream):
        def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
            asked.append((limit, start))
            return super().rows(limit, start=start)

    monkeypatch.setattr(module, "open_planned", lambda m, p: Watched(open_source(m)))
    assert seen([2, 3, 9]) == expected([2, 3, 9])
    assert asked == [(1, 2), (1, 3), (1, 9)]


@pytest.mark.slow
def test_a_folder_through_a_loader(manifest_file: Write) -> None:
    """Of ``datasets``, whose import takes seconds."""
    Path("photos").mkdir()
    for n in range(80):
        Path(f"photos/{n:03}.png").write_bytes(plain(n))
    tasks = "[{name: things, type: detect, objects: [cat]}]"
    told_run(manifest_file(input="{hub: imagefolder, options: {data_dir: photos}}", tasks=tasks))
    assert [told for _, _, told in seen([1, 2, 79])] == [shade(1), shade(2), shade(79)]


def test_pictures_in_files(manifest_file: Write) -> None:
    Path("data").mkdir()
    for n in range(3):
        Path(f"data/{n}.png").write_bytes(plain(n))
    pq.write_table(
        pa.table({"image": [f"{n}.png" for n in range(3)], "name": ["row0", "row1", "row2"]}), "data/r.parquet"
    )
    tasks = "[{name: things, type: detect, objects: [cat]}]"
    told_run(manifest_file(input="{parquet: data/r.parquet, id: name}", tasks=tasks))
    assert seen(range(3)) == expected(range(3))
    Path("data/1.png").unlink()
    assert the_problem(1).code == "IMAGE_MISSING"
