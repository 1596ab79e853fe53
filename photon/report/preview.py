"""The contact sheet: a sample of a run's rows, each picture with its answers, in one PNG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, PngImagePlugin

from photon.data.disk import blaming
from photon.errors import UsageError
from photon.job.asked import OBJECT_TYPES, AskedTask
from photon.job.folder import PREVIEW, PREVIEW_MARK, is_preview, result_file
from photon.job.output import RunOutput
from photon.manifest.problems import nearest
from photon.report.answers import lines_of, marks_of
from photon.report.draw import Palette, draw_marks, labels_of
from photon.report.rows import ShownRow, sample, shown_rows
from photon.report.sheet import PICTURE, Cell, Heading, make_sheet
from photon.report.tasks import MEANINGLESS, fixed_labels, is_meaningless, questions, shown_tasks

_MOST_ROWS, _MOST_COLUMNS = 200, 12


@dataclass(frozen=True, slots=True)
class PreviewOptions:
    """``rows`` are drawn at most, ``columns`` side by side; ``tasks``: the answers of these alone, all where empty;
    ``min_score``: leave out boxes and points below it; ``failed``: failed rows alone; ``seed``: which rows."""

    rows: int = 12
    columns: int = 4
    tasks: tuple[str, ...] = ()
    min_score: float = 0.0
    failed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("rows", _MOST_ROWS), ("columns", _MOST_COLUMNS)):
            if not 1 <= getattr(self, name) <= most:
                raise UsageError(f"--{name} is from 1 to {most}, not {getattr(self, name)}")
        if not 0 <= self.min_score <= 1:
            raise UsageError(f"--min-score is from 0 to 1, not {self.min_score:g}")


@dataclass(frozen=True, slots=True)
class Preview:
    """``shown`` of ``total`` rows (of the failed ones where those were asked for) are in ``path``; of ``lost`` rows the
    run saw a picture that could not be shown again."""

    path: Path
    shown: int
    total: int
    failed: bool
    lost: int

    def text(self) -> str:
        """What to tell a person, in one line."""
        lost = f"; {self.lost} of the pictures could not be shown, and it says why" if self.lost else ""
        return f"wrote {self.path}: {self.shown:,} of {self.total:,} {'failed ' if self.failed else ''}rows{lost}"


def write_preview(folder: Path, path: Path | None = None, options: PreviewOptions | None = None) -> Preview:
    """Draws rows of the output in ``folder`` to ``path``, by default preview.png in it.

    Raises ``UsageError`` for a wrong name, ``InputError`` where the output or the pictures cannot be read,
    ``OutputError`` where the file cannot be written.
    """
    options = options or PreviewOptions()
    output = RunOutput(folder)
    path = _checked(path, output.root)
    tasks = _wanted(output, options.tasks)
    among = output.failed() if options.failed else range(output.count())
    if not among:
        raise UsageError(f"none of the {output.count():,} rows of {output.root} failed; leave --failed out")
    positions = [among[n] for n in sample(len(among), options.rows, options.seed)]
    palette = Palette(fixed_labels(tasks))
    cells, labels, lost = [], dict[str, None](), 0
    for row in shown_rows(output, positions, [task.name for task in tasks]):
        cells.append(_cell(row, tasks, palette, options.min_score))
        lost += row.picture is None and (row.cells["image"] is not None or row.cells["status"] == "ok")
        if row.picture is not None:
            labels.update(dict.fromkeys(labels_of(marks_of(row.cells, tasks, options.min_score))))
    made = Preview(path, len(cells), len(among), options.failed, lost)
    legend = [(label, palette.colour(label)) for label in palette.labels if label in labels]
    _write(make_sheet(_heading(output, tasks, options, made), legend, cells, options.columns), path)
    return made


def _checked(path: Path | None, root: Path) -> Path:
    """Where the sheet goes: never onto a file that is not a preview, nor among the results but for preview.png."""
    own = root / PREVIEW
    path = own if path is None else path.expanduser()
    if path.suffix.lower() != ".png":
        raise UsageError(f"a preview is a .png file, not {path}")
    if os.path.abspath(path) != os.path.abspath(own):
        result_file(path, root, "preview")
    if path.exists() and not is_preview(path):
        raise UsageError(f"{path} is there already and no preview of ours; write to another file with --out")
    return path


def _wanted(output: RunOutput, names: Sequence[str]) -> list[AskedTask]:
    known = {task.name: task for task in shown_tasks(output)}
    for name in names:
        if name not in known:
            raise UsageError(f"{output.root} has no task {name}; {nearest(name, [*known])}")
    return [task for task in known.values() if not names or task.name in names]


def _cell(row: ShownRow, tasks: Sequence[AskedTask], palette: Palette, min_score: float) -> Cell:
    name = str(row.cells["row_id"])
    if row.picture is None:
        return Cell(name, None, (), row.problem)
    (width, height), (most_width, most_height) = row.picture.size, PICTURE
    scale = min(most_width / width, most_height / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    how = Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC
    small = row.picture.resize(size, how, reducing_gap=3.0)
    drawn = draw_marks(small, marks_of(row.cells, tasks, min_score), palette)
    return Cell(name, drawn, tuple(lines_of(row.cells, tasks, min_score)))


def _heading(output: RunOutput, tasks: Sequence[AskedTask], options: PreviewOptions, made: Preview) -> Heading:
    told = [f"{made.shown:,} of {made.total:,} {'failed rows' if options.failed else 'rows'}"]
    if output.is_running:
        told.append("as far as the run has come")
    if options.min_score:
        told.append(f"boxes and points from score {options.min_score:g} on")
    warning = MEANINGLESS if is_meaningless(output) else None
    asked = [
        (task.name, f"{task.type} {question}" if task.type in OBJECT_TYPES else question)
        for task, question in zip(tasks, questions(output, tasks), strict=True)
    ]
    return Heading(str(output.root), ", ".join(told), asked, warning)


def _write(sheet: Image.Image, path: Path) -> None:
    mark = PngImagePlugin.PngInfo()
    mark.add_text(*PREVIEW_MARK)
    beside = path.with_name(f".{path.name}.tmp")
    with blaming(path):
        try:
            sheet.save(beside, "PNG", pnginfo=mark)
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
