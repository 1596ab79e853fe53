"""An export is there whole or not at all: it is written under a hidden name beside its place, and renamed at the end.

What a killed export left there goes with the next one to the same place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from photon.data.disk import blaming
from photon.errors import OutputError
from photon.job.folder import result_file


@contextmanager
def staged(place: Path, output: Path, kind: str, *, is_file: bool) -> Iterator[Path]:
    """A path to write ``place`` at; it takes that name when the block ends well. ``kind`` says what it is to people.

    Raises ``UsageError`` for a place among the results in ``output``, ``OutputError`` for one that is taken and where
    the system refuses.
    """
    place = place.expanduser()
    if place.name in ("", ".."):
        place = Path(os.path.abspath(place))
    result_file(place, output, kind)
    with blaming(place, "look into"):
        _check_free(place, kind, is_file)
    beside = place.with_name(f".{place.name}.export.tmp")
    with blaming(place):
        _remove(beside)
        if not is_file:
            beside.mkdir()
        try:
            yield beside
            if place.is_dir():
                place.rmdir()  # it is empty, and not every system renames onto it
            os.replace(beside, place)
        except BaseException:
            _remove(beside)
            raise


def _check_free(place: Path, kind: str, is_file: bool) -> None:
    if is_file and place.is_dir():
        raise OutputError(f"{place} is a folder, and the {kind} is a file; choose another name with --out")
    if is_file and os.path.lexists(place):
        raise OutputError(f"{place} is there already; remove it, or choose another name with --out")
    if not is_file and os.path.lexists(place) and not place.is_dir():
        raise OutputError(f"{place} is a file, and the {kind} is a folder; choose another one with --out")
    inside = next(place.iterdir(), None) if not is_file and place.is_dir() else None
    if inside is not None:
        raise OutputError(f"{place} is not empty ({inside.name}); remove it, or choose another folder with --out")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
