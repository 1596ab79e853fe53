"""Average precision as COCO has it, computed by pycocotools. Over every stored score: no threshold applies here."""

from __future__ import annotations

import contextlib
import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_EVERY = 1 << 60  # answers of a class in a picture that are looked at; COCO stops at 100
_ROWS = 500  # judged at a time: pycocotools keeps two kilobytes for every box


@dataclass(frozen=True, slots=True)
class AveragePrecision:
    """At IoU 0.5, and as the mean over IoU 0.50, 0.55 ... 0.95."""

    ap50: float
    ap: float


def has_pycocotools() -> bool:
    """Whether the optional package is there."""
    try:
        import pycocotools.cocoeval  # noqa: F401
    except ImportError:
        return False
    return True


def average_precision(true: array[float], found: array[float]) -> AveragePrecision | None:
    """Of one class: ``true`` holds (row, corners) and ``found`` (row, corners, score), flat, rows ascending. None
    without truth, where it is not defined."""
    if not true:
        return None
    truth, answers = np.asarray(true).reshape(-1, 5), np.asarray(found).reshape(-1, 6)
    rows = np.unique(np.concatenate((truth[:, 0], answers[:, 0])))
    scores, right = [], []
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        judged = _judged(some, *(boxes[_span(boxes, some)] for boxes in (truth, answers)))
        for made in filter(None, judged.evalImgs):
            scores.append(np.asarray(made["dtScores"]))
            right.append(made["dtMatches"] > 0)
    return _accumulated(judged, np.concatenate(scores), np.concatenate(right, axis=1), len(truth))


def _span(boxes: np.ndarray, rows: np.ndarray) -> slice:
    """Where the boxes of these ``rows`` lie."""
    return slice(*np.searchsorted(boxes[:, 0], (rows[0], rows[-1] + 1)))


def _judged(rows: np.ndarray, true: np.ndarray, found: np.ndarray) -> Any:
    """pycocotools' own matching, row by row."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth, answers = COCO(), COCO()
        for made, boxes in ((truth, true), (answers, found)):
            images = [{"id": int(row)} for row in rows]
            made.dataset = {"images": images, "categories": [{"id": 1}], "annotations": [*_boxes(boxes)]}
            made.createIndex()
        judged = COCOeval(truth, answers, "bbox")
        judged.params.areaRng, judged.params.areaRngLbl = [[0, float("inf")]], ["all"]
        judged.params.maxDets = [_EVERY]
        judged.evaluate()
    return judged


def _accumulated(judged: Any, scores: np.ndarray, right: np.ndarray, true: int) -> AveragePrecision:
    """``right`` holds a line for each IoU. All rows are handed over as if they were one, which to pycocotools is the
    same, and the IoUs one by one, which takes a tenth of the memory."""
    ious, precisions = judged.params.iouThrs, []
    nothing, rest = np.zeros((1, len(scores)), dtype=bool), [None] * (len(judged.evalImgs) - 1)
    pooled = {"dtScores": scores, "dtIgnore": nothing, "gtIgnore": np.zeros(true, dtype=bool)}
    for n in range(len(ious)):
        judged.evalImgs = [{**pooled, "dtMatches": right[n : n + 1]}, *rest]
        judged.params.iouThrs = ious[n : n + 1]
        with contextlib.redirect_stdout(io.StringIO()):
            judged.accumulate()
        precisions.append(float(judged.eval["precision"].mean()))  # over recall
    return AveragePrecision(precisions[0], sum(precisions) / len(precisions))


def _boxes(table: np.ndarray) -> Iterator[dict[str, Any]]:
    """As COCO annotations; ids count from 1, since 0 means unmatched to pycocotools."""
    for number, (row, x_min, y_min, x_max, y_max, *score) in enumerate(table.tolist(), 1):
        across, down = x_max - x_min, y_max - y_min
        box = {"id": number, "image_id": int(row), "category_id": 1, "iscrowd": 0, "area": across * down}
        yield {**box, "bbox": [x_min, y_min, across, down], **({"score": score[0]} if score else {})}
