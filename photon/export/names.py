"""What a row's picture is called in an export: after its whole path, so that two of one basename stay apart."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from photon.data.folder import SUFFIXES
from photon.job.output import RunOutput

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 180  # bytes of a stem; file systems take 255 for all of a name


def row_name(row: Mapping[str, Any], output: RunOutput) -> str:
    """The row's id where a column gave it; else the picture's path in its folder, or the row's position."""
    if output.id_column is None:
        folders = (output.record["manifest"].get("input") or {}).get("folder") or ()
        file = row["source"]["file"]
        for folder in map(os.path.normpath, map(os.path.expanduser, folders)):
            if file.startswith(folder + os.sep):
                return str(file[len(folder) + 1 :]).replace(os.sep, "/")
    return str(row["row_id"])


def safe_name(name: str) -> str:
    """``name`` as one file name: folders become ``__``; letters of any script and blanks stay."""
    flat = "__".join(part for part in name.split("/") if part not in ("", ".", ".."))
    flat = _UNSAFE.sub("_", flat).strip(". ") or "row"
    stem, suffix = stem_and_suffix(flat)
    while len(os.fsencode(stem)) > _LONGEST:
        stem = stem[1:]  # the end of a path tells more than its beginning
    return stem + suffix


def stem_and_suffix(name: str) -> tuple[str, str]:
    """The suffix is a picture's, or empty."""
    suffix = PurePosixPath(name).suffix
    return (name[: -len(suffix)], suffix) if suffix.lower() in SUFFIXES else (name, "")


def xml_text(text: object) -> str:
    """Without the control characters that no XML file may hold."""
    return _NO_XML.sub("\ufffd", str(text))


def free_stem(stem: str, index: int, *places: tuple[Path, str]) -> str:
    """``stem``, or with the row's number behind it where a file of that name is in one of ``places``, each a folder
    and a suffix. Looking at the disk costs no memory, and knows which names are alike to it."""
    while any(os.path.lexists(folder / f"{stem}{suffix}") for folder, suffix in places):
        stem = f"{stem}-row{index}"
    return stem
