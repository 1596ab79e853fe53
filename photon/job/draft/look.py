"""What some data holds, from its schema and its first rows: pictures, ids, and columns for prompts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from photon.core import Image
from photon.data.files import expand, is_remote, open_remote, reading
from photon.data.folder import SUFFIXES
from photon.data.refused import Refused
from photon.data.row import Row
from photon.errors import UsageError
from photon.job.draft.find import Found
from photon.job.sources import open_source
from photon.manifest.manifest import Manifest
from photon.manifest.rules import RESULT_COLUMNS

#: Rows that are looked at.
SAMPLE = 100
_PICTURE_NAMES = ("image", "img", "picture", "photo", "jpg", "jpeg", "png", "webp", "bytes", "file")
_ID_NAMES = ("id", "__key__", "key", "file_name", "filename", "image_id", "uid", "uuid", "name", "path", "url")
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"P5", b"P6", b"\0\0\0\x0cjP  ")
_LONGEST_ID, _LONGEST_KEPT, _LONGEST_PROMPT = 200, 1000, 60


@dataclass(frozen=True, slots=True)
class Looked:
    """``image`` names the column of pictures and ``image_type`` says what it holds; ``sampled`` counts rows read."""

    image: str
    image_type: str
    fetch: bool
    id: str | None
    keep: tuple[str, ...]
    prompts: tuple[str, ...]
    rows: int | None
    sampled: int


def look_at(found: Found) -> Looked:
    """Raises ``UsageError`` where no column holds pictures, ``InputError`` where the data cannot be read."""
    schema = _schema(found)
    image = _image_column(found, schema)
    columns = [
        field.name
        for field in schema
        if field.name != image
        and field.name not in RESULT_COLUMNS
        and schema.names.count(field.name) == 1
        and _is_plain(field.type)
    ]
    source = open_source(_manifest(found, image, columns))
    rows = list(source.rows(SAMPLE))
    values = {name: [row.columns[name] for row in rows] for name in columns}
    identity = _identity(values)
    kept = [name for name in columns if name != identity and _longest(values[name]) <= _LONGEST_KEPT]
    prompts = [name for name in kept if not set("{}") & set(name) and _fits_prompt(values[name])]
    fetch = any(_picture(row.image) == "url" for row in rows)
    kind = str(schema.field(image).type)
    return Looked(image, kind, fetch, identity, tuple(kept), tuple(prompts), source.count(), len(rows))


def _manifest(found: Found, image: str, keep: Sequence[str]) -> Manifest:
    """As little as opens the data; nothing is written to its output."""
    spec = {found.kind: found.patterns, "image": image, "keep": tuple(keep)}
    task = {"name": "photon-batch-init", "type": "caption"}
    rest = {"model": {"path": "photon://null"}, "tasks": (task,), "output": {"dir": os.devnull}}
    return Manifest.model_validate({"version": 1, "input": spec, **rest})


def _schema(found: Found) -> pa.Schema:
    if found.kind not in ("parquet", "arrow"):
        return open_source(_manifest(found, "image", ())).schema
    folder = found.patterns[0]
    patterns = [os.path.join(folder, "*.arrow")] if os.path.isdir(folder) else found.patterns
    file = expand(patterns)[0]
    with reading(file):
        if found.kind == "parquet":
            return pq.read_schema(open_remote(file) if is_remote(file) else file)
        with pa.memory_map(file) as mapped:
            try:
                return pa.ipc.open_file(mapped).schema
            except pa.ArrowInvalid:
                mapped.seek(0)
                return pa.ipc.open_stream(mapped).schema


def _image_column(found: Found, schema: pa.Schema) -> str:
    """The column most of whose first cells are pictures: structs and bytes before text, telling names before others."""
    fields = [field for field in schema if _may_hold_pictures(field.type) and schema.names.count(field.name) == 1]
    best, most = None, 0.0
    for field in sorted(fields, key=lambda field: (_is_text(field.type), _rank(field.name, _PICTURE_NAMES))):
        if best is not None and _is_text(field.type):
            break
        with suppress(UsageError):  # of a type that only looks like one of pictures
            share = _share(list(open_source(_manifest(found, field.name, ())).rows(SAMPLE // 5)))
            if share > most:
                best, most = field.name, share
    if best is None:
        held = ", ".join(f"{field.name} ({field.type})" for field in schema)
        told = f"no column of {found.patterns[0]} holds pictures, paths of pictures, or their URLs; its columns: {held}"
        raise UsageError(f"{told}. Write a manifest by hand where they are elsewhere: docs/inputs.md")
    return str(best)


def _share(rows: Sequence[Row]) -> float:
    """How many of the cells that are not null are pictures, if half of them are."""
    cells = [row.image for row in rows if row.image is not None]
    pictures = sum(_picture(cell) is not None for cell in cells)
    return pictures / len(cells) if cells and 2 * pictures >= len(cells) else 0.0


def _picture(image: Image | None) -> str | None:
    """What a cell is, by its first bytes or its name: "bytes", "file", "url", or None for no picture."""
    source = None if image is None else image.source
    if isinstance(source, bytes):
        boxed = (source[:4] == b"RIFF" and source[8:12] == b"WEBP") or source[4:8] == b"ftyp"
        return "bytes" if boxed or source.startswith(_MAGIC) else None
    if isinstance(source, Refused):
        return "url" if (source.url or "").startswith(("http://", "https://")) else None
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        return "file" if os.path.splitext(name)[1].lower() in SUFFIXES and os.path.isfile(name) else None
    return None


def _identity(values: Mapping[str, Sequence[Any]]) -> str | None:
    """The column whose texts are all there and differ: one named like an id, else one whose values are single words."""
    named = [name for name, cells in values.items() if cells and _differ(cells)]
    likely = [name for name in named if name.lower() in _ID_NAMES or name.lower().endswith("_id")]
    words = [name for name in named if not any(" " in cell for cell in values[name])]
    ranked = sorted(likely, key=lambda name: _rank(name, _ID_NAMES)) or words
    return ranked[0] if ranked else None


def _differ(cells: Sequence[Any]) -> bool:
    texts = [cell for cell in cells if isinstance(cell, str) and 0 < len(cell) <= _LONGEST_ID]
    return len(texts) == len(cells) == len(set(texts))


def _fits_prompt(cells: Sequence[Any]) -> bool:
    return bool(cells) and all(isinstance(cell, str) and 0 < len(cell.strip()) <= _LONGEST_PROMPT for cell in cells)


def _longest(cells: Sequence[Any]) -> int:
    return max((len(cell) for cell in cells if isinstance(cell, str)), default=0)


def _rank(name: str, names: Sequence[str]) -> int:
    return names.index(name.lower()) if name.lower() in names else len(names)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _may_hold_pictures(kind: pa.DataType) -> bool:
    if pat.is_struct(kind):
        return any(field.name in ("bytes", "path") for field in kind)
    return _is_text(kind) or "binary" in str(kind)


def _is_plain(kind: pa.DataType) -> bool:
    """What can be carried along and read by anyone: text, numbers, switches."""
    return bool(_is_text(kind) or pat.is_integer(kind) or pat.is_floating(kind) or pat.is_boolean(kind))
