"""The output folder: ours from the first run on, never shared with files that we did not write.

DIR/data/part-XXXXXX.arrow holds the rows, DIR/run.json what made them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from photon.data.disk import blaming
from photon.errors import OutputError

_PART = re.compile(r"part-\d+\.arrow|\.part-.*\.tmp")
_RECORD = re.compile(r"run\.json|\.run\.json\.tmp")


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
            else:
                yield path, _RECORD.fullmatch(path.name) is not None

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


def _is_record(path: Path) -> bool:
    """Whether this run.json is one that we wrote."""
    try:
        return "photon_batch" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
