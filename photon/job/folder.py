"""The output folder: ours from the first run on, never shared with files that we did not write.

DIR/data/part-XXXXXX.arrow holds the rows, DIR/run.json what made them. DIR/preview.png may show some of them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from photon.data.disk import blaming
from photon.errors import OutputError, UsageError

PREVIEW = "preview.png"
#: The keyword and text by which a preview is known as ours: among the first bytes of the file, as PNG's ``tEXt``.
PREVIEW_MARK = ("Software", "photon-batch preview")

_PART = re.compile(r"part-\d+\.arrow|\.part-.*\.tmp")
_BESIDE = re.compile(r"run\.json|\.run\.json\.tmp|\.preview\.png\.tmp")


class OutputFolder:
    """``root`` as the manifest names it. Nothing is touched before ``claim``."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(os.path.expanduser(root))
        self.data = self.root / "data"
        self.record = self.root / "run.json"

    def check(self, fresh: bool) -> None:
        """Raises ``OutputError`` when the folder cannot be looked into, holds files of others, or an earlier run's and
        not ``fresh``."""
        with blaming(self.root, "look into"):
            self._check(fresh)

    def claim(self, fresh: bool) -> None:
        """Makes the folders and, with ``fresh``, removes an earlier run's files. Raises ``OutputError``."""
        self.check(fresh)
        with blaming(self.root, "write to"):
            self.data.mkdir(parents=True, exist_ok=True)
            for path in list(self._ours()):
                path.unlink()

    def _check(self, fresh: bool) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise OutputError(f"{self.root} is a file; name a folder in output.dir")
        foreign = next(self._foreign(), None)
        if foreign is not None:
            raise OutputError(f"{self.root} holds a file that is not ours: {foreign}; choose another output.dir")
        earlier = next(self._ours(), None)
        if earlier is not None and not fresh:
            raise OutputError(
                f"{self.root} holds the results of an earlier run ({earlier.name}); "
                "choose another output.dir, or replace them with --fresh"
            )

    def _files(self) -> Iterator[tuple[Path, bool]]:
        """Every path inside, with whether it is ours."""
        if not self.root.is_dir():
            return
        for path in sorted(self.root.iterdir()):
            if path == self.data and path.is_dir() and not path.is_symlink():
                yield from ((part, _PART.fullmatch(part.name) is not None) for part in sorted(path.iterdir()))
            elif path == self.record:
                yield path, _is_record(path)
            elif path.name == PREVIEW:
                yield path, is_preview(path)
            else:
                yield path, _BESIDE.fullmatch(path.name) is not None

    def _ours(self) -> Iterator[Path]:
        return (path for path, ours in self._files() if ours)

    def _foreign(self) -> Iterator[Path]:
        return (path for path, ours in self._files() if not ours)


def lies_in(file: str | Path, folder: str | Path) -> bool:
    """Whether ``file`` itself or, for a link, what it leads to is ``folder`` or inside of it."""
    here = Path(os.path.realpath(folder))
    name = Path(os.path.abspath(file))
    return any(
        place.is_relative_to(here)
        for place in (Path(os.path.realpath(name)), Path(os.path.realpath(name.parent), name.name))
    )


def result_file(path: Path, output: Path, kind: str) -> None:
    """Raises ``UsageError`` where ``path`` cannot be written beside the results in ``output``."""
    if lies_in(path, output):
        raise UsageError(f"{output} holds results and nothing else; write the {kind} somewhere else than {path}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} to write the {kind} to; make it first")


def is_preview(path: Path) -> bool:
    """Whether this picture is one that ``preview`` wrote."""
    try:
        with path.open("rb") as file:
            start = file.read(256)
    except OSError:
        return False
    return start.startswith(b"\x89PNG") and b"tEXt" + "\0".join(PREVIEW_MARK).encode() in start


def _is_record(path: Path) -> bool:
    """Whether this run.json is one that we wrote."""
    try:
        return "photon_batch" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
