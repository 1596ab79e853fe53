"""Cells with a picture and lines of text, laid out as one large picture under a heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from photon.core import Failure
from photon.report.answers import Line, Tone
from photon.report.draw import Colour
from photon.report.lettering import clean, cut, font_for, wrap

#: The width of a column, and the largest width and height of a picture, in pixels.
CELL = 352
PICTURE = (CELL, 304)
_MARGIN, _GAP = 28, 20
_LOWEST = 132  # a row of the sheet: pictures that are lower stand in the middle of it
_ID, _TEXT, _TITLE = 13, 13, 22  # font sizes
_LEADING = 18  # from line to line
_LINES_EACH, _LINES = 3, 7  # of one answer, and of all answers of a cell
_PAPER, _MAT, _GREY = (255, 255, 255), (243, 243, 241), (217, 217, 214)
_INK: dict[Tone, Colour] = {"plain": (28, 28, 30), "quiet": (118, 118, 122), "bad": (163, 38, 44)}


@dataclass(frozen=True, slots=True)
class Cell:
    """``picture`` is RGB, ``PICTURE`` pixels at most; None where ``problem`` says why there is none."""

    name: str
    picture: Image.Image | None
    lines: Sequence[Line]
    problem: Failure | None = None


@dataclass(frozen=True, slots=True)
class Heading:
    """``tasks`` are names with what they ask. ``warning`` is something to know before looking."""

    title: str
    told: str
    tasks: Sequence[tuple[str, str]] = ()
    warning: str | None = None


def make_sheet(
    heading: Heading, legend: Sequence[tuple[str, Colour]], cells: Sequence[Cell], columns: int
) -> Image.Image:
    """The sheet, RGB. ``legend`` are labels with their colours; ``cells`` go ``columns`` side by side."""
    columns = min(columns, len(cells))
    width = 2 * _MARGIN + columns * CELL + (columns - 1) * _GAP
    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    texts = [[_texts(cell) for cell in row] for row in rows]
    heights = [max(_LOWEST, *(cell.picture.height if cell.picture else 0 for cell in row)) for row in rows]
    below = [8 + _LEADING + _LEADING * max(map(len, lines)) + _GAP for lines in texts]
    top = _Head(heading, legend, width).height
    sheet = Image.new("RGB", (width, top + sum(heights) + sum(below) + _MARGIN - _GAP), _PAPER)
    _Head(heading, legend, width).draw(sheet)
    y = top
    for row, lines, height, rest in zip(rows, texts, heights, below, strict=True):
        for number, (cell, told) in enumerate(zip(row, lines, strict=True)):
            _draw_cell(sheet, (_MARGIN + number * (CELL + _GAP), y), cell, told, height)
        y += height + rest
    return sheet


def _texts(cell: Cell) -> list[tuple[Line, str, bool]]:
    """The lines below a picture: what they belong to, the words, and whether the task's name stands before them."""
    made: list[tuple[Line, str, bool]] = []
    for line in cell.lines:
        parts = wrap(f"{line.task}: {line.text}", _TEXT, CELL, _LINES_EACH)
        made += [(line, part, number == 0) for number, part in enumerate(parts)]
    if len(made) > _LINES:
        made = [*made[: _LINES - 1], (Line("", "", "quiet"), "…", False)]
    return made


def _draw_cell(
    sheet: Image.Image, at: tuple[int, int], cell: Cell, lines: Sequence[tuple[Line, str, bool]], height: int
) -> None:
    pen, (x, y) = ImageDraw.Draw(sheet), at
    pen.rectangle((x, y, x + CELL - 1, y + height - 1), fill=_GREY if cell.picture is None else _MAT)
    if cell.picture is not None:
        sheet.paste(cell.picture, (x + (CELL - cell.picture.width) // 2, y + (height - cell.picture.height) // 2))
    elif cell.problem is not None:
        _draw_problem(pen, at, cell.problem, height)
    y += height + 8
    name = cut(cell.name, _ID, CELL, keep="end")
    pen.text((x, y), name, fill=_INK["plain"], font=font_for(name, _ID))
    for line, words, first in lines:
        y += _LEADING
        _draw_line(pen, (x, y), line, words, first)


def _draw_line(pen: ImageDraw.ImageDraw, at: tuple[int, int], line: Line, words: str, first: bool) -> None:
    """Its task's name is quiet, whatever the rest is."""
    x, y = at
    font = font_for(words, _TEXT)
    head = f"{clean(line.task)}: "
    if first and words.startswith(head):
        pen.text((x, y), head, fill=_INK["quiet"], font=font)
        x, words = x + round(font.getlength(head)), words.removeprefix(head)
    pen.text((x, y), words, fill=_INK[line.tone], font=font)


def _draw_problem(pen: ImageDraw.ImageDraw, at: tuple[int, int], problem: Failure, height: int) -> None:
    room = CELL - 2 * _GAP
    message = wrap(problem.message, _TEXT, room, 4) if problem.message.strip() else []
    x, y = at[0] + CELL // 2, at[1] + (height - _LEADING * (1 + len(message))) // 2
    code = cut(problem.code, _TEXT + 1, room)
    pen.text((x, y), code, fill=_INK["bad"], font=font_for(code, _TEXT + 1), anchor="ma")
    for number, words in enumerate(message):
        where = (x, y + _LEADING * (number + 1) + 4)
        pen.text(where, words, fill=_INK["plain"], font=font_for(words, _TEXT), anchor="ma")


class _Head:
    """The heading: title and what is told beside it, what each task asks, the legend."""

    def __init__(self, heading: Heading, legend: Sequence[tuple[str, Colour]], width: int) -> None:
        self._room = width - 2 * _MARGIN
        self._title = cut(heading.title, _TITLE, self._room, keep="end")
        self._told = wrap(heading.told, _TEXT, self._room, 2)
        self._tasks = [(name, cut(f"{name}: {asked}", _TEXT, self._room)) for name, asked in heading.tasks[:8]]
        self._warning = wrap(heading.warning, _TEXT, self._room, 2) if heading.warning else []
        self._legend = _flow(legend, self._room)

    @property
    def height(self) -> int:
        lines = len(self._told) + len(self._tasks) + len(self._warning)
        return _MARGIN + _TITLE + 10 + _LEADING * lines + (12 + 24 * len(self._legend) if self._legend else 0) + 14

    def draw(self, sheet: Image.Image) -> None:
        pen, y = ImageDraw.Draw(sheet), _MARGIN - 4
        pen.text((_MARGIN, y), self._title, fill=_INK["plain"], font=font_for(self._title, _TITLE))
        y += _TITLE + 12
        for ink, lines in ((_INK["quiet"], self._told), (_INK["bad"], self._warning)):
            for words in lines:
                pen.text((_MARGIN, y), words, fill=ink, font=font_for(words, _TEXT))
                y += _LEADING
        for name, words in self._tasks:
            _draw_line(pen, (_MARGIN, y), Line(name, ""), words, True)
            y += _LEADING
        y += 12
        for chips in self._legend:
            for x, label, colour in chips:
                if colour is not None:
                    pen.rounded_rectangle((_MARGIN + x, y + 1, _MARGIN + x + 13, y + 14), 3, fill=colour)
                    x += 20
                pen.text((_MARGIN + x, y), label, fill=_INK["plain"], font=font_for(label, _TEXT))
            y += 24


def _flow(legend: Sequence[tuple[str, Colour]], room: int) -> list[list[tuple[int, str, Colour | None]]]:
    """Chips with their x, in two lines at most; a last one without colour says how many more there are."""
    lines: list[list[tuple[int, str, Colour | None]]] = []
    x = room
    for number, (label, colour) in enumerate(legend):
        label = cut(label, _TEXT, 160)
        taken = 20 + round(font_for(label, _TEXT).getlength(label)) + 18
        last = len(lines) == 2 and x + taken + 80 > room
        if last:
            lines[-1].append((x, f"and {len(legend) - number} more", None))
            break
        if x + taken > room:
            lines.append([])
            x = 0
        lines[-1].append((x, label, colour))
        x += taken
    return lines
