"""One data set in every form that it can be stored in: the same rows in the same order, whatever the form, the row
groups and the files.

What a form cannot hold: a folder no column but the file's name, no null picture and no empty name; WebDataset no name
with a dot (it ends the key) and no null picture on its own; a URL no null bytes behind it, only a missing page. There
the comparison says so.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from photon.data.arrow import ArrowSource
from photon.data.download import FetchPolicy
from photon.data.fetched import Fetched
from photon.data.folder import FolderSource
from photon.data.hub import HubSource
from photon.data.parquet import ParquetSource
from photon.data.row import Row, Source
from photon.data.webdataset import WebDatasetSource
from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode

from .fake_hub import Hub, serve
from .fake_web import Web, serve_web
from .tars import write_tar

#: (id, picture's digest or code of its failure, its orientation, kept text, kept number)
Seen = tuple[str, str, int, object, object]


@dataclass(frozen=True)
class Cell:
    picture: bytes | None
    text: str | None
    number: int


@dataclass(frozen=True)
class Stored:
    """``sizes``: rows of each file; ``group``: rows of a row group or batch."""

    cells: list[Cell]
    sizes: list[int]
    group: int

    @property
    def names(self) -> list[str]:
        return [f"{n:03d}-gr\u00fc\u00df-\u4f60" for n in range(len(self.cells))]

    @property
    def pieces(self) -> list[range]:
        starts = [sum(self.sizes[:n]) for n in range(len(self.sizes))]
        return [range(start, start + size) for start, size in zip(starts, self.sizes, strict=True)]

    def table(self, rows: range) -> pa.Table:
        encoded = [self.cells[n].picture for n in rows]
        pictures = [None if data is None else {"bytes": data, "path": None} for data in encoded]
        columns = {
            "image": pa.array(pictures, datasets.Image.pa_type),
            "name": pa.array([self.names[n] for n in rows], pa.string()),
            "text": pa.array([self.cells[n].text for n in rows], pa.string()),
            "number": pa.array([self.cells[n].number for n in rows], pa.int64()),
        }
        return pa.table(columns)


def encode(seed: int, orientation: int) -> bytes:
    picture, file, exif = Image.new("RGB", (3, 2), (seed, 7, 255 - seed)), io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    picture.save(file, "JPEG", exif=exif)
    return file.getvalue()


PICTURES = st.one_of(
    st.builds(encode, st.integers(0, 255), st.integers(1, 8)),
    st.just(b"no picture at all"),
    st.just(encode(1, 1)[:-200]),
    st.just(b""),
    st.none(),
)
CELLS = st.builds(Cell, PICTURES, st.none() | st.text('a\u00e9\u4f60 "{}.', max_size=5), st.integers(0, 1 << 40))


@st.composite
def data_sets(draw: st.DrawFn, least: int = 1) -> Stored:
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) >= least))
    cells = draw(st.lists(CELLS, min_size=sum(sizes), max_size=sum(sizes)))
    return Stored(cells, sizes, draw(st.integers(1, 4)))


def seen(row: Row, text: str = "text", number: str = "number") -> Seen:
    digest, orientation = "IMAGE_MISSING", 0
    if row.image is not None:
        try:
            info = decode(row.image.source, DecodePolicy())[1]
            digest, orientation = str(info.sha256), info.exif_orientation
        except ImageError as error:
            digest = error.code
    return row.row_id, digest, orientation, row.columns.get(text), row.columns.get(number)


def write_parquet(stored: Stored, folder: Path) -> list[Path]:
    paths = []
    for n, rows in enumerate(stored.pieces):
        paths.append(folder / f"part-{n + 8}.parquet")  # 8, 9, 10, 11: not the order of the alphabet
        pq.write_table(stored.table(rows), paths[-1], row_group_size=stored.group)
    return paths


def write_arrow(stored: Stored, folder: Path, form: str) -> None:
    for n, rows in enumerate(stored.pieces):
        table = stored.table(rows)
        maker = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with maker(folder / f"part-{n + 8}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=stored.group)


def write_saved(stored: Stored, folder: Path) -> None:
    whole = datasets.Dataset(stored.table(range(len(stored.cells)))).cast_column("image", datasets.Image())
    whole.save_to_disk(folder / "saved", num_shards=min(len(stored.sizes), len(stored.cells)))


def write_tars(stored: Stored, folder: Path) -> None:
    for n, rows in enumerate(stored.pieces):
        members = []
        for row in rows:
            name, cell = stored.names[row], stored.cells[row]
            members.append((f"{name}.cls", str(cell.number).encode()))
            members += [] if cell.text is None else [(f"{name}.txt", cell.text.encode())]
            members += [] if cell.picture is None else [(f"{name}.jpg", cell.picture)]
        write_tar(folder / f"part-{n + 8}.tar", members)


def everywhere(stored: Stored, folder: Path) -> dict[str, Source]:
    """The data set in each local form that holds all of it."""
    columns = {"image": "image", "id": "name", "columns": ["text", "number"]}
    write_parquet(stored, folder)
    for form in ("file", "stream"):
        (folder / form).mkdir()
        write_arrow(stored, folder / form, form)
    write_saved(stored, folder)
    hub = {"data_files": {"train": [str(path) for path in write_parquet(stored, folder)]}}
    return {
        "parquet": ParquetSource([str(folder / "*.parquet")], **columns),
        "arrow file": ArrowSource([str(folder / "file/*.arrow")], **columns),
        "arrow stream": ArrowSource([str(folder / "stream/*.arrow")], **columns),
        "save_to_disk": ArrowSource([str(folder / "saved")], **columns),
        "loader": HubSource("parquet", split="train", options=hub, **columns),
    }


PROPERTY = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def fresh(tmp_path: Path) -> Path:
    folder = tmp_path / "now"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@pytest.mark.slow
@settings(max_examples=25, **PROPERTY)
@given(stored=data_sets(), start=st.integers(0, 8), limit=st.none() | st.integers(0, 8))
def test_the_same_rows_in_every_local_form(tmp_path: Path, stored: Stored, start: int, limit: int | None) -> None:
    folder = fresh(tmp_path)
    want = reference(stored)
    stop = None if limit is None else start + limit
    for form, source in everywhere(stored, folder).items():
        assert [seen(row) for row in source.rows()] == want, form
        part = list(source.rows(limit, start=start))
        assert [(row.index, *seen(row)) for row in part] == list(enumerate_from(want, start, stop)), form
        assert source.count() == len(want), form


def reference(stored: Stored) -> list[Seen]:
    """What every form has to give, computed from the data set itself."""
    rows = []
    for name, cell in zip(stored.names, stored.cells, strict=True):
        digest, orientation = "IMAGE_MISSING", 0
        if cell.picture is not None:
            try:
                info = decode(cell.picture, DecodePolicy())[1]
                digest, orientation = str(info.sha256), info.exif_orientation
            except ImageError as error:
                digest = error.code
        rows.append((name, digest, orientation, cell.text, cell.number))
    return rows


def enumerate_from(want: list[Seen], start: int, stop: int | None) -> list[tuple[object, ...]]:
    return [(n, *row) for n, row in enumerate(want)][start:stop]


@settings(max_examples=10, **PROPERTY)
@given(stored=data_sets(), start=st.integers(0, 8))
def test_the_same_rows_as_tars_and_as_a_folder(tmp_path: Path, stored: Stored, start: int) -> None:
    folder = fresh(tmp_path)
    want = reference(stored)
    if stored.cells[0].text is not None:  # else the first tar need not have the column
        stored = Stored(stored.cells, [len(stored.cells)], stored.group) if stored.sizes[0] == 0 else stored
        write_tars(stored, folder)
        source = WebDatasetSource([str(folder / "*.tar")], id="__key__", columns=["txt", "cls"])
        assert [seen(row, "txt", "cls") for row in source.rows()] == want
        rows = [(row.index, *seen(row, "txt", "cls")) for row in source.rows(start=start)]
        assert rows == enumerate_from(want, start, None)
    there = [n for n, cell in enumerate(stored.cells) if cell.picture is not None]
    for n in there:
        (folder / f"{n // 2}").mkdir(exist_ok=True)
        (folder / f"{n // 2}" / f"{stored.names[n]}.jpg").write_bytes(stored.cells[n].picture or b"")
    if there:
        found = [seen(row)[:3] for row in FolderSource([str(folder)], id="file_name").rows()]
        assert found == [(f"{n // 2}/{want[n][0]}.jpg", *want[n][1:3]) for n in there]


@settings(max_examples=5, **PROPERTY)
@given(stored=data_sets())
def test_the_same_rows_from_urls(tmp_path: Path, stored: Stored) -> None:
    folder = fresh(tmp_path)
    pages = {f"/{n}.jpg": cell.picture for n, cell in enumerate(stored.cells) if cell.picture is not None}
    with serve_web(Web(pages)) as web:
        for n, rows in enumerate(stored.pieces):
            table = stored.table(rows).set_column(0, "image", [[f"{web.url}/{row}.jpg" for row in rows]])
            if len(rows):
                pq.write_table(table, folder / f"part-{n + 8}.parquet", row_group_size=stored.group)
        links = ParquetSource([str(folder / "*.parquet")], image="image", id="name", columns=["text", "number"])
        assert [seen(row) for row in Fetched(links, FetchPolicy(parallel=3)).rows()] == reference(stored)


SCRIPT = """
    import json, sys
    sys.path.insert(0, {root!r})
    from photon.data.hub import HubSource
    from photon.data.parquet import ParquetSource
    from tests.data.test_forms import seen

    found = {{}}
    columns = {{"image": "image", "id": "name", "columns": ["text", "number"]}}
    for n in range({count}):
        found[f"hub {{n}}"] = HubSource(f"org/set{{n}}", split="train", revision="v1", **columns)
        found[f"url {{n}}"] = ParquetSource([f"hf://datasets/org/set{{n}}@v1/data/*.parquet"], **columns)
        found[f"streamed {{n}}"] = HubSource(f"org/lines{{n}}", split="train", revision="v1", **columns)
    json.dump({{name: [seen(row) for row in source.rows()] for name, source in found.items()}}, sys.stdout)
"""


@pytest.mark.slow
def test_the_same_rows_from_the_hub(tmp_path: Path) -> None:
    """As Parquet by id and by URL, and as pictures with metadata, streamed. Three data sets, one process: it is slow to
    start."""
    dice = [encode(40, 6), None, b"no picture at all", encode(90, 1), b"", encode(200, 3)]
    cells = [Cell(dice[n % 6], None if n % 5 == 3 else f"t\u00e9xt {n}", n << 30) for n in range(13)]
    sets = [Stored(cells, [13], 13), Stored(cells, [4, 1, 8], 3), Stored(cells[:6], [1] * 6, 1)]
    repos = {}
    for number, stored in enumerate(sets):
        folder = tmp_path / str(number)
        folder.mkdir()
        repos[f"org/set{number}"] = {
            f"data/train-{n:05d}-of-{len(stored.sizes):05d}.parquet": path.read_bytes()
            for n, path in enumerate(write_parquet(stored, folder))
        }
        repos[f"org/lines{number}"] = as_pictures(stored)
    root = str(Path(__file__).parents[2])
    with serve(Hub(repos)) as hub:
        here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
        script = textwrap.dedent(SCRIPT).format(root=root, count=len(sets))
        done = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, **here}, capture_output=True, timeout=400
        )
    assert done.returncode == 0, done.stderr.decode()
    found = {name: [tuple(row) for row in rows] for name, rows in json.loads(done.stdout).items()}
    for number, stored in enumerate(sets):
        want = reference(stored)
        assert found[f"hub {number}"] == found[f"url {number}"] == want
        assert found[f"streamed {number}"] == [
            row for row, cell in zip(want, stored.cells, strict=True) if cell.picture
        ]


def as_pictures(stored: Stored) -> dict[str, bytes]:
    """A folder of pictures with metadata. It holds no null picture, and the hub's client no empty file."""
    files, lines = {}, []
    for name, cell in zip(stored.names, stored.cells, strict=True):
        if cell.picture:
            files[f"train/{name}.jpg"] = cell.picture
            line = {"file_name": f"{name}.jpg", "name": name, "text": cell.text, "number": cell.number}
            lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return {**files, "train/metadata.jsonl": "".join(lines).encode()}
