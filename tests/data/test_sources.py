"""Every kind of input gives every row, in order, with the bytes as they were, be one of them corrupt."""

import io
import json
import socket
import tarfile
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from photon.core import Image
from photon.data.arrow import ArrowSource
from photon.data.hub import HubSource
from photon.data.parquet import ParquetSource
from photon.data.row import Source
from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode

from .pictures import digest, pictures

COUNT, CORRUPT = 11, 8
PICTURES = pictures(COUNT, CORRUPT)
NAMES = [f"{n:03d}" for n in range(COUNT)]


def table(kind: str) -> pa.Table:
    cells = {
        "struct": pa.array([{"bytes": data, "path": None} for data in PICTURES]),
        "binary": pa.array(PICTURES),
        "large_binary": pa.array(PICTURES, pa.large_binary()),
        "path": pa.array([f"images/{name}.png" for name in NAMES]),
        "struct of paths": pa.array([{"bytes": None, "path": f"images/{name}.png"} for name in NAMES]),
    }
    return pa.table({"image": cells[kind], "name": NAMES})


def write_images(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in zip(NAMES, PICTURES, strict=True):
        (folder / f"{name}.png").write_bytes(data)


def write_ipc(path: Path, form: str, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    rows = table("struct")
    with (pa.ipc.new_file if form == "file" else pa.ipc.new_stream)(path, rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=4)


def make(kind: str, folder: Path) -> Source:
    columns = {"image": "image", "id": "name"}
    if kind.startswith("parquet"):
        write_images(folder / "images")
        pq.write_table(table(kind.removeprefix("parquet, ")), folder / "a.parquet", row_group_size=5)
        return ParquetSource([str(folder / "*.parquet")], **columns)
    if kind.startswith("arrow"):
        write_ipc(folder / "a.arrow", *kind.split(", ")[1:])
        return ArrowSource([str(folder / "*.arrow")], **columns)
    if kind == "save_to_disk":
        typed = table("struct").cast(pa.schema({"image": datasets.Image.pa_type, "name": pa.string()}))
        datasets.Dataset(typed).cast_column("image", datasets.Image()).save_to_disk(folder / "saved", num_shards=3)
        return ArrowSource([str(folder / "saved")], **columns)
    return make_loaded(kind.removeprefix("loader "), folder)


def make_loaded(kind: str, folder: Path) -> Source:
    columns = {"image": "image", "id": "name"}
    write_images(folder / "data" / "images")
    if kind in ("imagefolder", "folder"):
        rows = [{"file_name": f"images/{name}.png", "name": name} for name in NAMES]
        (folder / "data" / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if kind == "folder":
            return HubSource(str(folder / "data"), split="train", **columns)
        return HubSource("imagefolder", split="train", options={"data_dir": str(folder / "data")}, **columns)
    if kind == "json":
        rows = [{"image": str(folder / f"data/images/{name}.png"), "name": name} for name in NAMES]
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        options = {"data_files": str(folder / "a.jsonl")}
        return HubSource("json", split="train", options=options, **columns)
    if kind == "parquet":
        pq.write_table(table("struct"), folder / "a.parquet", row_group_size=5)
        return HubSource("parquet", split="train", options={"data_files": str(folder / "*.parquet")}, **columns)
    assert kind == "webdataset"
    with tarfile.open(folder / "a.tar", "w") as tar:
        for name, data in zip(NAMES, PICTURES, strict=True):
            member = tarfile.TarInfo(f"{name}.png")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    options = {"data_files": str(folder / "a.tar")}
    return HubSource("webdataset", split="train", options=options, image="png", id="__key__")


KINDS = [
    *(f"parquet, {kind}" for kind in ("struct", "binary", "large_binary", "path", "struct of paths")),
    *("arrow, file", "arrow, stream", "arrow, file, zstd", "arrow, stream, lz4", "save_to_disk"),
    *(f"loader {kind}" for kind in ("imagefolder", "folder", "json", "parquet", "webdataset")),
]


def watch_the_network(monkeypatch) -> list[object]:
    """Every address that is asked for from here on. Left to itself, ``datasets`` counts loads on a server."""
    contacted: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **more: contacted.append(address))
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: contacted.append(address))
    monkeypatch.setattr(datasets.load, "get_session", lambda: contacted.append("a session"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", True)
    return contacted


@pytest.mark.parametrize("kind", KINDS)
def test_one_corrupt_row_of_n_gives_n_rows(kind, tmp_path, monkeypatch):
    contacted = watch_the_network(monkeypatch)
    source = make(kind, tmp_path)
    assert source.count() in (COUNT, None)
    rows = list(source.rows())
    assert [row.index for row in rows] == list(range(COUNT))
    assert [row.row_id for row in rows] == NAMES
    assert len({row.ref for row in rows}) == COUNT
    failed = {}
    for row, data in zip(rows, PICTURES, strict=True):
        assert isinstance(row.image, Image)
        try:
            assert decode(row.image.source, DecodePolicy())[1].sha256 == digest(data)
        except ImageError as error:
            failed[row.index] = error.code
    assert failed == {CORRUPT: "IMAGE_UNIDENTIFIED"}
    part = list(source.rows(3, start=5))
    assert [(row.index, row.row_id, row.ref) for row in part] == [(r.index, r.row_id, r.ref) for r in rows[5:8]]
    assert contacted == []  # nothing was named that is elsewhere


@pytest.mark.parametrize("kind", ["arrow, file", "arrow, stream", "save_to_disk", "loader imagefolder"])
def test_the_schema_has_every_column(kind, tmp_path):
    schema = make(kind, tmp_path).schema
    assert {"image", "name"} <= set(schema.names)
    assert schema.field("image").type.field("bytes").type == pa.binary()
