"""Folders of pictures: every picture below them, one row each, in natural order. Pictures are not opened here.

A folder's entries come by name, 2 before 10, files and folders alike, so the order does not depend on the file system.
Hidden names and files that are not named as pictures are left out, and counted. Links are followed, but not in circles.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from photon.core import Image
from photon.data.columns import Columns
from photon.data.files import is_remote, natural, reading
from photon.data.row import Row, RowRef
from photon.data.unit import Stamp, Unit, changed, glance
from photon.errors import UsageError

log = logging.getLogger(__name__)

#: Names of pictures, whatever their case. HEIC and AVIF are read where Pillow can read them; else the row says so.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".j2k", ".png", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".avif", ".heic", ".heif"),
    )
)
_SCHEMA = pa.schema({"image": pa.string(), "file_name": pa.string(), "folder": pa.string()})


class _Picture(NamedTuple):
    root: str
    name: str  # from root on
    planned: Unit | None = None


class FolderSource:
    """A ``Source`` over the pictures in ``folders``, folder by folder.

    Its columns are ``image``, ``file_name`` (the path inside of the folder, with ``/``) and ``folder`` (that of its
    parent, "" at the top). Raises ``UsageError`` for a folder that is not there or holds no picture, ``InputError`` for
    one that cannot be read.
    """

    def __init__(
        self,
        folders: Sequence[str],
        *,
        image: str = "image",
        id: str | None = None,
        columns: Sequence[str] = (),
        units: Iterable[Unit] | None = None,
    ) -> None:
        """``units``: the pictures, in their order, in place of what the folders hold now; nothing is looked up then.
        ``rows`` raises ``UsageError`` at one whose stamp is another now."""
        self._columns = Columns(image, id, tuple(columns))
        if units is not None:
            self._pictures = [_Picture(unit.root, unit.name, unit) for unit in units]
            return
        roots = _roots([folders] if isinstance(folders, str) else folders)
        self._columns.check(_SCHEMA, "a folder of pictures")
        if image != "image":
            raise UsageError(f"column {image!r} of a folder holds no pictures: the column of its pictures is 'image'")
        self._pictures = [_Picture(root, name) for root in roots for name in _pictures_in(root)]

    @property
    def schema(self) -> pa.Schema:
        return _SCHEMA

    @property
    def files(self) -> Sequence[str]:
        return [os.path.join(picture.root, picture.name) for picture in self._pictures]

    def count(self) -> int:
        return len(self._pictures)

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        return [Unit(name, (1,), (), _stamp(os.path.join(root, name)), root) for root, name, _ in self._pictures]

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        stop = len(self._pictures) if limit is None else min(start + limit, len(self._pictures))
        for index in range(start, stop):
            root, name, planned = self._pictures[index]
            if planned is not None:
                _check(planned)
            shown = shown_name(name).replace(os.sep, "/")
            ref = RowRef(shown_name(os.path.join(root, name)), 0, 0)
            cells = {"image": ref.file, "file_name": shown, "folder": os.path.dirname(shown)}
            row_id = cells[self._columns.id] if self._columns.id else ref.position
            others: dict[str, object] = {column: cells[column] for column in self._columns.others}
            yield Row(index, row_id, ref, Image(os.path.join(root, name)), others)


def _roots(folders: Sequence[str]) -> list[str]:
    roots: list[str] = []
    for folder in folders:
        if is_remote(folder):
            raise UsageError(f"{folder!r} is not on this machine: download it, or name a hub's folder by its id as hub")
        root = os.path.normpath(os.path.expanduser(folder))
        for other in roots:
            here, there = os.path.realpath(root), os.path.realpath(other)
            if os.path.commonpath([here, there]) in (here, there):
                raise UsageError(f"folders {other} and {root} lie in one another: name the outer one alone")
        roots.append(root)
    if not roots:
        raise UsageError("the input names no folder")
    return roots


def _pictures_in(root: str) -> list[str]:
    if not os.path.isdir(root):
        what = "is a file: name the folder that it is in" if os.path.exists(root) else "is no folder"
        raise UsageError(f"{root} {what} (from {os.getcwd()})")
    left_out: Counter[str] = Counter()
    found = list(_walk(root, "", (), left_out))
    if left_out:
        told = ", ".join(f"{count:,} {what}" for what, count in sorted(left_out.items()))
        log.info("%s: %s pictures; left out: %s", root, f"{len(found):,}", told)
    if not found:
        raise UsageError(f"{root} holds no picture; pictures are files named {' '.join(sorted(SUFFIXES))}")
    return found


def _walk(root: str, folder: str, above: tuple[tuple[int, int], ...], left_out: Counter[str]) -> Iterator[str]:
    """The pictures' names in order; ``above``: the folders that this one is in, by device and inode."""
    here = os.path.join(root, folder)
    with reading(here):
        status = os.stat(here)
        entries = sorted(os.scandir(here), key=lambda entry: natural(entry.name))
    me = (status.st_dev, status.st_ino)
    if me in above:
        left_out["links in a circle"] += 1
        return
    for entry in entries:
        name = os.path.join(folder, entry.name)
        if entry.name.startswith("."):
            left_out["hidden"] += 1
        elif _is_folder(entry):
            yield from _walk(root, name, (*above, me), left_out)
        elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
            yield name  # a link that leads nowhere too: the row will say that it is missing
        else:
            left_out["not named as a picture"] += 1


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: not a folder, and if it is named as a picture, the row will say what it is
        return False


def _stamp(picture: str) -> Stamp | None:
    try:
        return glance(picture)
    except OSError:  # a link that leads nowhere: the row will say so
        return None


def _check(planned: Unit) -> None:
    """Raises ``UsageError`` where the picture is another than was planned; of one that is gone, the row tells."""
    now = _stamp(planned.path)
    if planned.stamp is not None and now is not None and not planned.stamp.same_as(now):
        raise changed([planned])


def shown_name(name: str) -> str:
    """A name as text, where it is not UTF-8 too: those bytes as ``\\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
