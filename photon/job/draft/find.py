"""Which of a manifest's sources some data is: told by names alone, no file is opened."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from photon.data.files import is_remote
from photon.data.folder import SUFFIXES
from photon.errors import UsageError

_KINDS = {".parquet": "parquet", ".arrow": "arrow", ".tar": "webdataset", **dict.fromkeys(SUFFIXES, "folder")}
#: Files that are looked at to tell what a folder holds.
_MOST_FILES = 10_000
_KNOWN = "Parquet files, Arrow files, tars, a folder of pictures, or a folder that save_to_disk wrote"


@dataclass(frozen=True, slots=True)
class Found:
    """``kind`` is a key of a manifest's input, ``patterns`` its value; ``stem`` a name to call all of it by."""

    kind: str
    patterns: tuple[str, ...]
    stem: str


def find_data(names: Sequence[str]) -> Found:
    """What ``names`` (files, globs, URLs, or one folder) are. Raises ``UsageError`` where that cannot be told."""
    places = [name if is_remote(name) else os.path.normpath(os.path.expanduser(name)) for name in names]
    if len(places) == 1 and os.path.isdir(places[0]):
        return _in_folder(places[0])
    for place in places:
        if not is_remote(place) and not os.path.exists(place) and not glob.glob(place, recursive=True):
            hub = "; a hub data set goes into a manifest as input.hub: docs/inputs.md" if place.count("/") == 1 else ""
            raise UsageError(f"there is no {place} (from {os.getcwd()}); give {_KNOWN}{hub}")
    kinds = {_kind(place) for place in places}
    if len(kinds) != 1 or None in kinds or "folder" in kinds:
        pictures = "; of pictures, give the folder that they are in" if "folder" in kinds else ""
        raise UsageError(f"cannot tell what {', '.join(places)} is; give {_KNOWN}, of one kind at a time{pictures}")
    return Found(str(kinds.pop()), tuple(places), _stem(places[0]))


def _in_folder(folder: str) -> Found:
    stem = _safe(os.path.basename(os.path.abspath(folder)))
    saved = _saved(folder)
    if saved is not None:
        return Found("arrow", (saved,), stem)
    counts = Counter(_kind(name) for name in islice(_files(folder), _MOST_FILES))
    del counts[None]
    if not counts:
        raise UsageError(f"{folder} holds nothing that could be read; give {_KNOWN}")
    kind = str(counts.most_common(1)[0][0])
    if kind == "folder":
        return Found(kind, (folder,), stem)
    suffix = next(suffix for suffix, known in _KINDS.items() if known == kind)
    flat = any(name.endswith(suffix) for name in os.listdir(folder))
    pattern = os.path.join(glob.escape(folder), *([] if flat else ["**"]), f"*{suffix}")
    return Found(kind, (pattern,), stem)


def _saved(folder: str) -> str | None:
    """The folder of a data set that ``save_to_disk`` wrote: this one, or its first split, train before others."""
    if os.path.exists(os.path.join(folder, "state.json")):
        return folder
    if not os.path.exists(os.path.join(folder, "dataset_dict.json")):
        return None
    splits = sorted(glob.glob(os.path.join(glob.escape(folder), "*", "state.json")))
    named = sorted((os.path.dirname(split) for split in splits), key=lambda place: os.path.basename(place) != "train")
    return named[0] if named else None


def _files(folder: str) -> Iterator[str]:
    return (name for _, _, names in os.walk(folder) for name in names if not name.startswith("."))


def _kind(name: str) -> str | None:
    return _KINDS.get(PurePath(name).suffix.lower())


def _stem(place: str) -> str:
    """The last part of a file's place that is no pattern."""
    parts = [part for part in PurePath(place.partition("://")[2] or os.path.abspath(place)).parts if part.strip("/")]
    plain = [part for part in parts if not glob.has_magic(part)] or ["data"]
    return _safe(plain[-1].removesuffix(PurePath(plain[-1]).suffix) if _kind(plain[-1]) else plain[-1])


def _safe(name: str) -> str:
    """``name`` as one that no shell minds."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".-") or "data"
