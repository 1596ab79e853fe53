"""The output folder: ours from the first run on, never shared with files that we did not write.

DIR/data holds the rows, DIR/run.json says what made them; plan.json, ledger, open, quarantine, shards and crash are for
the next run and for whoever wants to know. DIR/preview.png and DIR/report.html may show some of the rows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from photon.data.disk import blaming
from photon.data.writer import part_name
from photon.errors import OutputError, UsageError
from photon.plan.ledger import Record
from photon.plan.plan_file import NAMES, head_name

PREVIEW = "preview.png"
#: The keyword and text by which a preview is known as ours: among the first bytes of the file, as PNG's ``tEXt``.
PREVIEW_MARK = ("Software", "photon-batch preview")
REPORT = "report.html"
#: The same for a report.
REPORT_MARK = '<meta name="generator" content="photon-batch report">'

_PART = r"part-\d+\.arrow|\.part-\d+\.arrow\..*\.tmp"
#: The names of our files in each of our folders.
_INSIDE = {
    "data": re.compile(_PART),
    "open": re.compile(_PART),
    "quarantine": re.compile(_PART),
    "ledger": re.compile(r"shard-\d+-of-\d+\.jsonl"),
    "shards": re.compile(r"\d+-of-\d+\.(owner|status)\.json|\..*\.(tmp|stale)"),
    "crash": re.compile(r"\d+-\d+-of-\d+-\d+\.json|\..*\.tmp"),
}
#: What a network file system makes of a removed file that somebody has open still.
_REMOVED = re.compile(r"\.nfs[0-9a-f]+")
_BESIDE = re.compile(rf"\.(run\.json|preview\.png|report\.html)(\.\w+)?\.tmp|{NAMES}")


class OutputFolder:
    """``root`` as the manifest names it. Nothing is touched before ``claim``."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(os.path.expanduser(root))
        self.data = self.root / "data"
        self.record = self.root / "run.json"

    def part(self, chunk: int) -> Path:
        return self.data / part_name(chunk)

    def holds(self, record: Record) -> bool:
        """Whether the part of a committed chunk is there, by its size."""
        try:
            return self.part(record.chunk).stat().st_size == record.bytes
        except FileNotFoundError:
            return False

    def check(self, fresh: bool) -> None:
        """Raises ``OutputError`` when the folder cannot be looked into, holds files of others or, without ``fresh``,
        results that no plan tells of."""
        with blaming(self.root, "look into"):
            self._check(fresh)

    def claim(self, fresh: bool, keep: Path | None = None) -> None:
        """Makes the folders and, with ``fresh``, removes an earlier run's files, but for the one to ``keep``. Raises
        ``OutputError``."""
        self.check(fresh)
        with blaming(self.root, "write to"):
            for path in list(self._ours()) if fresh else ():
                if path != keep:
                    path.unlink()
            self.data.mkdir(parents=True, exist_ok=True)

    def _check(self, fresh: bool) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise OutputError(f"{self.root} is a file; name a folder in output.dir")
        foreign = next(self.foreign(), None)
        if foreign is not None:
            raise OutputError(f"{self.root} holds a file that is not ours: {foreign}; choose another output.dir")
        if fresh or (self.root / head_name(0)).exists():
            return
        earlier = next((path for path in self._ours() if path.parent == self.data or path == self.record), None)
        if earlier is not None:
            raise OutputError(
                f"{self.root} holds results without the plan they were made by ({earlier.name}, no plan.json); "
                "choose another output.dir, or replace them with --fresh"
            )

    def _files(self) -> Iterator[tuple[Path, bool]]:
        """Every path inside that counts, with whether it is ours."""
        if not self.root.is_dir():
            return
        for path in _entries(self.root):
            inside = _INSIDE.get(path.name)
            if inside is not None and path.is_dir() and not path.is_symlink():
                yield from ((file, inside.fullmatch(file.name) is not None) for file in _entries(path))
            elif path == self.record:
                yield path, _is_record(path)
            elif path.name == PREVIEW:
                yield path, is_preview(path)
            elif path.name == REPORT:
                yield path, is_report(path)
            else:
                yield path, _BESIDE.fullmatch(path.name) is not None

    def _ours(self) -> Iterator[Path]:
        return (path for path, ours in self._files() if ours)

    def foreign(self) -> Iterator[Path]:
        """The paths inside that we did not write."""
        return (path for path, ours in self._files() if not ours)


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not _REMOVED.fullmatch(path.name))


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
    start = _start(path)
    return start.startswith(b"\x89PNG") and b"tEXt" + "\0".join(PREVIEW_MARK).encode() in start


def is_report(path: Path) -> bool:
    """Whether this page is one that ``report`` wrote."""
    return REPORT_MARK.encode() in _start(path)


def _start(path: Path) -> bytes:
    """The first bytes of a file, none where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError:
        return b""


def _is_record(path: Path) -> bool:
    """Whether this run.json is one that we wrote."""
    try:
        return "photon_batch" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
