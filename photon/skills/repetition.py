"""Noticing that a model goes round in circles, so that one picture does not cost a thousand steps.

Text: the same stretch of up to 64 tokens at least three times in a row, 24 tokens or more in all (a row of zeros or
dots is not a circle). Objects: three in a row that each coincide with one of the eight before. Both are switchable;
what they cut short says so in its finish reason.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_PERIOD = 64
CYCLES = 3
FEWEST_TOKENS = 24
SAME_IOU = 0.95
SAME_POINT_BINS = 2
LOOK_BACK = 8
IN_A_ROW = 3


class TextRepetition:
    """Fed token by token; looks only at earlier places of the same token, so ordinary text costs next to nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._places: dict[int, deque[int]] = {}
        self._matched: dict[int, int] = {}  # period -> how many tokens up to here equal the one a period before

    def add(self, token: int) -> bool:
        """Whether the text now ends in a circle."""
        at = self._count
        self._count += 1
        places = self._places.setdefault(token, deque())
        while places and at - places[0] > LONGEST_PERIOD:
            places.popleft()
        self._matched = {at - place: self._matched.get(at - place, 0) + 1 for place in places}
        places.append(at)
        return any(
            matched >= (CYCLES - 1) * period and matched + period >= FEWEST_TOKENS
            for period, matched in self._matched.items()
        )


class Place(Protocol):
    """What of an object this module looks at: bins of the centre, and of the size if it has one."""

    x: int
    y: int
    size: tuple[int, int] | None


class PlaceRepetition:
    """Fed object by object. ``box`` turns an object with a size into (x_min, y_min, x_max, y_max)."""

    def __init__(self, box: Callable[[int, int, tuple[int, int]], tuple[float, float, float, float]]) -> None:
        self._box = box
        self._recent: deque[Place] = deque(maxlen=LOOK_BACK)
        self._in_a_row = 0

    def add(self, place: Place) -> int:
        """How many objects at the end are copies, once there are enough of them; else 0."""
        same = any(self._same(place, earlier) for earlier in self._recent)
        self._in_a_row = self._in_a_row + 1 if same else 0
        self._recent.append(place)
        return self._in_a_row if self._in_a_row >= IN_A_ROW else 0

    def _same(self, a: Place, b: Place) -> bool:
        if a.size is None or b.size is None:
            return abs(a.x - b.x) <= SAME_POINT_BINS and abs(a.y - b.y) <= SAME_POINT_BINS
        return iou(self._box(a.x, a.y, a.size), self._box(b.x, b.y, b.size)) >= SAME_IOU


def iou(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """Intersection over union of two (x_min, y_min, x_max, y_max) boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)
