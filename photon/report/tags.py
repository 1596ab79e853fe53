"""Where the tags of marks go: beside their mark, inside the picture, never on each other, and off small objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

#: First and last column and row: (left, top, right, bottom), in pixels, all included.
Rect: TypeAlias = tuple[int, int, int, int]

_ON_MARKS = 0.6  # of a tag's area, what may lie on other marks; beyond, it is better shortened, or left out
_SMALL = 0.1  # of the picture: marks up to this size are kept free; to cover a corner of a larger one does no harm


@dataclass(frozen=True, slots=True)
class Tag:
    """``around`` is what the mark takes. ``texts`` come with the width and height that they take, the best first."""

    label: str
    around: Rect
    is_box: bool
    texts: Mapping[str, tuple[int, int]]


def place_tags(tags: Sequence[Tag], size: tuple[int, int]) -> Iterator[tuple[Tag, str, Rect]]:
    """Each tag with the text that finds room and its place; the first ones have the choice. A tag without room in a
    picture of ``size`` is left out."""
    small = [tag.around for tag in tags if _shared(tag.around, tag.around) <= _SMALL * size[0] * size[1]]
    placed: list[Rect] = []
    for tag in tags:
        found = _best(tag, placed, [mark for mark in small if mark is not tag.around], size)
        if found is not None:
            placed.append(found[1])
            yield (tag, *found)


def _best(tag: Tag, placed: Sequence[Rect], marks: Sequence[Rect], size: tuple[int, int]) -> tuple[str, Rect] | None:
    for text, (width, height) in tag.texts.items():
        if width > size[0] or height > size[1]:
            continue
        places = [_inside(place, size) for place in _places(tag, width, height)]
        costs = []
        for number, place in enumerate(places):
            on_marks = sum(_shared(place, mark) for mark in marks)
            # On no other tag at all: half a score reads as another score.
            if on_marks <= _ON_MARKS * width * height and not any(_shared(place, other) for other in placed):
                costs.append((on_marks, number))
        if costs:
            return text, places[min(costs)[1]]
    return None


def _places(tag: Tag, width: int, height: int) -> list[Rect]:
    """Where a tag may go, the best first, be it inside the picture or not."""
    left, top, right, bottom = tag.around
    if tag.is_box:
        corners = [
            (left, top - height),
            (left, bottom + 1),
            (right - width + 1, top - height),
            (right - width + 1, bottom + 1),
            (left, top),
            (right - width + 1, bottom - height + 1),
            (right + 1, top),
            (left - width, top),
        ]
    else:
        across, down = (left + right - width + 1) // 2, (top + bottom - height + 1) // 2
        corners = [(right + 1, down), (left - width, down), (across, top - height), (across, bottom + 1)]
    return [(x, y, x + width - 1, y + height - 1) for x, y in corners]


def _inside(place: Rect, size: tuple[int, int]) -> Rect:
    """The same rectangle, moved as little as possible to lie in the picture, which is large enough."""
    left, top, right, bottom = place
    across = max(0, -left) - max(0, right - (size[0] - 1))
    down = max(0, -top) - max(0, bottom - (size[1] - 1))
    return left + across, top + down, right + across, bottom + down


def _shared(one: Rect, other: Rect) -> int:
    """Pixels that two rectangles share."""
    across = min(one[2], other[2]) - max(one[0], other[0]) + 1
    down = min(one[3], other[3]) - max(one[1], other[1]) + 1
    return max(0, across) * max(0, down)
