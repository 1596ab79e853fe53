"""Which columns of the input are read, the check that a file has them, and a row made from its cells."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from photon.core import Image
from photon.data.files import is_remote, remote_picture
from photon.data.refused import Refused, Unreadable
from photon.data.row import Row, RowRef
from photon.errors import UsageError


@dataclass(frozen=True, slots=True)
class Columns:
    """``image`` and, where given, ``id`` name columns; ``others`` are carried along in ``Row.columns``."""

    image: str
    id: str | None = None
    others: tuple[str, ...] = ()

    @property
    def needed(self) -> list[str]:
        """Every column to read, once each."""
        return list(dict.fromkeys([self.image, *([self.id] if self.id else []), *self.others]))

    def check(self, schema: pa.Schema, where: str, like: pa.Schema | None = None) -> None:
        """Raise ``UsageError`` where ``schema`` lacks a column, has it twice, has an image column without images, or
        has another type for a carried column than ``like``, the first file's schema."""
        for name in self.needed:
            if name not in schema.names:
                near = difflib.get_close_matches(name, schema.names, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise UsageError(f"{where} has no column {name!r}{hint} Its columns are {', '.join(schema.names)}.")
            if schema.names.count(name) > 1:
                raise UsageError(f"{where} has more than one column {name!r}: rename one of them")
        kind = schema.field(self.image).type
        if not _holds_images(kind):
            raise UsageError(
                f"column {self.image!r} of {where} is {kind}; an image column holds binary, structs of bytes and path, "
                f"or paths. The columns are {', '.join(f'{f.name} ({f.type})' for f in schema)}."
            )
        for name in self.others:
            kind = schema.field(name).type
            # All nulls, of no type: such a file fits any other.
            if like is not None and not pat.is_null(kind) and kind != (first := like.field(name).type):
                raise UsageError(
                    f"column {name!r} of {where} is {kind}, but {first} in the first file: "
                    "make them one type, or leave the column out"
                )

    def row(self, index: int, ref: RowRef, cells: Mapping[str, object], folder: str) -> Row:
        """The row of ``cells`` (Python values by column name); relative image paths start from ``folder``.

        A cell that is ``Unreadable`` makes it a row that fails with CELL_UNREADABLE.
        """
        refused = _refused(cells)
        if refused is not None:
            cells = {name: None if isinstance(cell, Unreadable) else cell for name, cell in cells.items()}
        row_id = cells[self.id] if self.id else None
        return Row(
            index=index,
            row_id=ref.position if row_id is None else str(row_id),
            ref=ref,
            image=refused or _image(cells[self.image], folder),
            columns={name: cells[name] for name in self.others},
        )


def _refused(cells: Mapping[str, object]) -> Image | None:
    for name, cell in cells.items():
        if isinstance(cell, Unreadable):
            return Image(Refused("CELL_UNREADABLE", f"column {name!r} cannot be read: {cell.reason}"))
    return None


def _holds_images(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_null(kind):  # not one picture, which is for the rows to say
        return True
    if pat.is_struct(kind):
        parts = [(field.name, field.type) for field in kind if field.name in ("bytes", "path")]
        return bool(parts) and all(
            pat.is_null(part) or (_is_bytes(part) if name == "bytes" else _is_text(part)) for name, part in parts
        )
    return _is_bytes(kind) or _is_text(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _image(cell: object, folder: str) -> Image | None:
    """Bytes win over a path, as in ``datasets``; empty bytes are a picture that is broken, an empty path is none."""
    if isinstance(cell, dict):
        data, path = cell.get("bytes"), cell.get("path")
        cell = path if data is None else data
    if isinstance(cell, bytes):
        return Image(cell)
    if not isinstance(cell, str) or not cell:
        return None
    if "://" in cell:  # nothing is fetched unless the manifest says so
        told = f"the picture is at {cell:.300}; to have it fetched, write input.urls: {{fetch: true}}"
        return Image(Refused("IMAGE_MISSING", told, url=cell))
    path = os.path.join(folder, cell)
    return Image(remote_picture(path) if is_remote(path) else path)
