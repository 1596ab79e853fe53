"""Which answers are right: each is paired with at most one truth, and each truth with at most one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from photon.evaluate.truth import Corners
from photon.skills.repetition import iou as iou_of


def match_boxes(found: Sequence[Corners], true: Sequence[Corners], iou: float) -> list[bool]:
    """Whether each of ``found``, best score first, is right: one after the other, each takes the free truth that it
    shares most of its union with, ``iou`` at least. So does pycocotools, and of equal shares the later is taken."""
    free = list(range(len(true)))
    right = []
    for box in found:
        best, taken = min(iou, 1 - 1e-10), None
        for n in free:
            share = iou_of(box, true[n])
            if share >= best:
                best, taken = share, n
        if taken is not None:
            free.remove(taken)
        right.append(taken is not None)
    return right


def match_points(found: Sequence[tuple[float, float]], true: Sequence[Corners]) -> list[bool]:
    """Whether each of ``found``, best score first, is a hit: it lies in a box (edges included) that it can have for
    itself while every earlier hit keeps one, if need be another one than before. So overlapping boxes cost no hit, and
    dropping the last points changes none of the earlier ones."""
    inside = [[n for n, box in enumerate(true) if _holds(box, point)] for point in found]
    seats = _Seats(inside)
    return [seats.give(point) for point in range(len(found))]


class _Seats:
    """Boxes that points have for themselves; ``inside`` lists the boxes of each point."""

    def __init__(self, inside: Sequence[Sequence[int]]) -> None:
        self._inside = inside
        self._owner: dict[int, int] = {}
        self._box: dict[int, int] = {}
        self._full: set[int] = set()  # from these no change of places leads to a free box, nor ever will

    def give(self, point: int) -> bool:
        """Breadth first and in a loop: a chain of points that make room may be as long as there are boxes."""
        asker: dict[int, int] = {}  # of each box, the point that would have it
        asking = [point]
        for one in asking:
            for n in self._inside[one]:
                if n in asker or n in self._full:
                    continue
                asker[n] = one
                if n not in self._owner:
                    self._move_up(n, asker)
                    return True
                asking.append(self._owner[n])
        self._full.update(asker)
        return False

    def _move_up(self, free: int | None, asker: Mapping[int, int]) -> None:
        """Each point takes the box that it asked for and leaves its own to the next."""
        while free is not None:
            point = asker[free]
            self._owner[free] = point
            left = self._box.get(point)
            self._box[point] = free
            free = left


def _holds(box: Corners, point: tuple[float, float]) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]
