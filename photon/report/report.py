"""The report of a run: figures and galleries of its rows, as one HTML file to pass on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from photon.data.disk import blaming
from photon.data.files import reading
from photon.errors import InputError, UsageError
from photon.job.asked import AskedTask
from photon.job.folder import REPORT, is_report, result_file
from photon.job.output import RunOutput
from photon.report.cards import Shown
from photon.report.columns import answers_of
from photon.report.page import Content, page
from photon.report.picks import Gallery, Picks
from photon.report.rows import shown_rows
from photon.report.tally import tally_for
from photon.report.tasks import shown_tasks
from photon.report.throughput import throughput
from photon.report.thumbnail import thumbnail

#: Bytes of a report, at most.
LARGEST = 20_000_000
_FOR_PICTURES = 14_000_000  # the rest is for figures, marks and texts
_MOST_ROWS = 100
_OWN = ("row_id", "status", "error_code", "error_message")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """``rows`` in each gallery at most, 0 for no galleries; ``seed``: which rows, among those that are alike."""

    rows: int = 12
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.rows <= _MOST_ROWS:
            raise UsageError(f"--rows is from 0 to {_MOST_ROWS}, not {self.rows}")


@dataclass(frozen=True, slots=True)
class Report:
    """The file in ``path`` tells of ``rows`` rows and shows ``shown`` of them; of ``lost`` rows the run saw a picture
    that could not be shown again. ``rows_each`` went into a gallery, fewer than wanted where the file was too large."""

    path: Path
    rows: int
    shown: int
    lost: int
    bytes: int
    rows_each: int
    wanted: int

    def text(self) -> str:
        """What to tell a person, in one line."""
        lost = f"; {self.lost} of the pictures could not be shown, and it says why" if self.lost else ""
        less = self.wanted - self.rows_each
        fewer = f"; {self.rows_each} rows a gallery, so that it stays below {LARGEST / 1e6:.0f} MB" if less else ""
        size = f"{self.bytes / 1e6:.1f} MB"
        return f"wrote {self.path}: {self.rows:,} rows, {self.shown:,} of them shown, {size}{lost}{fewer}"


def write_report(folder: Path, path: Path | None = None, options: ReportOptions | None = None) -> Report:
    """Writes the report of the output in ``folder`` to ``path``, by default report.html in it.

    Raises ``UsageError`` for a wrong name, ``InputError`` where the output or the pictures cannot be read,
    ``OutputError`` where the file cannot be written.
    """
    options = options or ReportOptions()
    output = RunOutput(folder)
    path = _checked(path, output.root)
    tasks = shown_tasks(output)
    content, galleries = _counted(output, tasks, options)
    rows, lost = _shown(output, tasks, galleries)
    rows_each, text = _fitting(content, galleries, rows, options.rows)
    _write(text, path)
    left = {position for gallery in galleries for position in gallery.positions[:rows_each]}
    return Report(path, content.tally.rows, len(left), lost, len(text), rows_each, options.rows)


def _checked(path: Path | None, root: Path) -> Path:
    """Where the report goes: never onto a file that is not a report, nor among the results but for report.html."""
    own = root / REPORT
    path = own if path is None else path.expanduser()
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"a report is a .html file, not {path}")
    if os.path.abspath(path) != os.path.abspath(own):
        result_file(path, root, "report")
    if path.exists() and not is_report(path):
        raise UsageError(f"{path} is there already and no report of ours; write to another file with --out")
    return path


def _counted(output: RunOutput, tasks: Sequence[AskedTask], options: ReportOptions) -> tuple[Content, list[Gallery]]:
    """One pass over the parts, a batch at a time."""
    tally, picks = tally_for(tasks), Picks(options.rows, options.seed)
    written: list[tuple[float, int]] = []
    for part in output.parts:
        before = tally.rows
        for batch in output.batches(part, [*_OWN, *(task.name for task in tasks)]):
            answers = {task.name: answers_of(batch, task) for task in tasks}
            tally.count(batch, answers)
            picks.offer(batch, answers.values())
        with reading(str(part)):
            written.append((part.stat().st_mtime, tally.rows - before))
    wall = output.record.get("wall_time_s") or None
    pace = throughput(written, output.record.get("started") or 0.0, wall)
    return Content(output, tasks, tally, pace), picks.galleries() if options.rows else []


def _shown(output: RunOutput, tasks: Sequence[AskedTask], galleries: Sequence[Gallery]) -> tuple[dict[int, Shown], int]:
    """The rows of the galleries by position, each picture made small as soon as it is read; and how many pictures that
    the run saw there are not."""
    positions = sorted({position for gallery in galleries for position in gallery.positions})
    rows: dict[int, Shown] = {}
    lost = 0
    try:
        for position, row in zip(positions, shown_rows(output, positions, [task.name for task in tasks]), strict=True):
            small = None if row.picture is None else thumbnail(row.picture, _FOR_PICTURES // len(positions))
            lost += row.picture is None and (row.cells["image"] is not None or row.cells["status"] == "ok")
            rows[position] = Shown(row.cells, small, row.problem)
    except InputError as error:
        raise InputError(f"{error}; or make a report without pictures, with --rows 0") from error
    return rows, lost


def _fitting(content: Content, galleries: Sequence[Gallery], rows: Mapping[int, Shown], most: int) -> tuple[int, bytes]:
    """The page with as many rows in a gallery as fit, and how many these are."""
    while True:
        fewer = [replace(gallery, positions=gallery.positions[:most]) for gallery in galleries]
        kept = {position: rows[position] for gallery in fewer for position in gallery.positions}
        text = page(content, fewer, kept).encode("utf-8", errors="replace")
        if len(text) <= LARGEST or not most:
            return most, text
        most //= 2


def _write(text: bytes, path: Path) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    with blaming(path):
        try:
            beside.write_bytes(text)
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
