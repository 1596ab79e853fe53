"""A row of the output as a card: its picture with the marks on it, and what its tasks answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from photon.core import Failure
from photon.job.asked import AskedTask
from photon.report.answers import Line, Mark, lines_of, marks_of
from photon.report.markup import Markup, element
from photon.report.thumbnail import Thumbnail

_MOST_MARKS = 300  # on one picture; more hide it
_LONGEST, _LONGEST_ID = 2000, 300  # characters of a text and of an id


@dataclass(frozen=True, slots=True)
class Shown:
    """A row: ``cells`` of its own and its tasks' columns, and its picture or why there is none."""

    cells: Mapping[str, Any]
    picture: Thumbnail | None
    problem: Failure | None


class Cards:
    """Cards of one page: a picture that comes again refers to where it came first. ``labels`` are those of all
    marks, and go by their place in it."""

    def __init__(self, tasks: Sequence[AskedTask], labels: Sequence[str]) -> None:
        self._tasks = tasks
        self._labels = {label: number for number, label in enumerate(labels)}
        self._placed: set[int] = set()

    def card(self, position: int, shown: Shown, key: str) -> Markup:
        """The card of the row at ``position``; ``key`` is its own in the page."""
        marks = [(n, mark) for n, task in enumerate(self._tasks) for mark in marks_of(shown.cells, [task])]
        lines = [(n, line) for n, task in enumerate(self._tasks) for line in lines_of(shown.cells, [task])]
        name = cut(str(shown.cells["row_id"]), _LONGEST_ID)
        body = self._picture(position, shown, marks, name) if shown.picture else _problem(shown.problem)
        return element(
            "article",
            body,
            element("h4", element("bdi", name), title=name),
            element("p", _told([mark for _, mark in marks]), class_="told"),
            *(_line(number, line) for number, line in lines),
            class_="card",
            id=key,
        )

    def _picture(self, position: int, shown: Shown, marks: Sequence[tuple[int, Mark]], name: str) -> Markup:
        picture = shown.picture
        assert picture is not None
        drawn = sorted(marks, key=lambda pair: -pair[1].score)[:_MOST_MARKS]
        # Large ones first: small ones stay on top, where they can be pointed at.
        drawn.sort(key=lambda pair: -_area(pair[1]))
        first = position not in self._placed
        self._placed.add(position)
        image = element(
            "img",
            alt=f"{name}: {_alt([mark for _, mark in marks])}",
            width=picture.width,
            height=picture.height,
            **({"id": f"p{position}", "src": picture.uri} if first else {"data_same": f"p{position}"}),
        )
        on_it = element(
            "span",
            image,
            *(self._mark(number, mark) for number, mark in drawn),
            class_="pic",
            style=f"--w:{picture.width};--h:{picture.height}",
        )
        return element("button", on_it, class_="mat", type="button")

    def _mark(self, task: int, mark: Mark) -> Markup:
        number = self._labels[mark.label]
        place = {"left": mark.x, "top": mark.y}
        if mark.far is not None:
            place |= {"width": mark.far[0] - mark.x, "height": mark.far[1] - mark.y}
        # A tag that would leave the picture goes inside, or to the left.
        turned = "".join([" u" if mark.y < 0.08 else "", " l" if mark.x > 0.6 else ""])
        return element(
            "span",
            element("span", f"{cut(mark.label, 60)} {mark.score:.2f}", class_="tag"),
            class_=f"m {'box' if mark.far is not None else 'point'} c{number}{turned}",
            style=";".join(f"{name}:{100 * value:.3f}%" for name, value in place.items()),
            data_t=task,
            data_c=number,
            data_s=f"{mark.score:.6f}",  # 0.7 in float32 is a little less, and is to be found from 0.7 on
            aria_hidden="true",
        )


def cut(text: str, longest: int) -> str:
    """``text``, or its start with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def drawn_labels(shown: Sequence[Shown], tasks: Sequence[AskedTask]) -> list[str]:
    """The labels of what was found in these rows, each once."""
    return list(dict.fromkeys(mark.label for row in shown for mark in marks_of(row.cells, tasks)))


def _told(marks: Sequence[Mark]) -> Markup | None:
    if not marks:
        return None
    mean = sum(mark.score for mark in marks) / len(marks)
    drawn = f", {_MOST_MARKS} drawn" if len(marks) > _MOST_MARKS else ""
    return element("span", element("b", f"{mean:.2f}"), f" mean score, {len(marks):,} found{drawn}")


def _alt(marks: Sequence[Mark]) -> str:
    counts = Counter(mark.label for mark in marks).most_common()
    some = ", ".join(f"{count} {cut(label, 60)}" for label, count in counts[:8]) or "nothing found"
    return some + (f" and {len(counts) - 8} more labels" if len(counts) > 8 else "")


def _line(task: int, line: Line) -> Markup:
    words = element("span", element("bdi", cut(line.text, _LONGEST)), class_=line.tone)
    return element("p", element("span", line.task, class_="of"), " ", words, class_="line", data_t=task)


def _problem(problem: Failure | None) -> Markup:
    problem = problem or Failure("FAILED", "")
    told = element("span", element("bdi", cut(problem.message, 600)))
    return element("div", element("strong", problem.code), told, class_="mat problem")


def _area(mark: Mark) -> float:
    return (mark.far[0] - mark.x) * (mark.far[1] - mark.y) if mark.far else 0.0
