"""Which answers are right: each is paired with at most one truth, and each truth with at most one answer."""

from __future__ import annotations

from collections.abc import Sequence

from photon.evaluate.truth import Corners


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
    owner: dict[int, int] = {}

    def settle(point: int, tried: set[int]) -> bool:
        for n in inside[point]:
            if n in tried:
                continue
            tried.add(n)
            if n not in owner or settle(owner[n], tried):
                owner[n] = point
                return True
        return False

    return [settle(point, set()) for point in range(len(found))]


def iou_of(a: Corners, b: Corners) -> float:
    """Intersection over union of two boxes; 0 for two without area."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def _holds(box: Corners, point: tuple[float, float]) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]
