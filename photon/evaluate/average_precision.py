"""Average precision as COCO has it, computed by pycocotools. Over every stored score: no threshold applies here."""

from __future__ import annotations

import contextlib
import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COCO_MOST = 100  # answers of a class in a picture that COCO looks at; more here, where there are more


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
    """Of one class: ``true`` holds (row, corners) and ``found`` (row, corners, score), flat. None without truth, where
    it is not defined."""
    if not true:
        return None
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    rows = sorted({int(row) for flat, width in ((true, 5), (found, 6)) for row in flat[::width]})
    with contextlib.redirect_stdout(io.StringIO()):
        truth, answers = COCO(), COCO()
        for made, boxes in ((truth, _boxes(true, 5)), (answers, _boxes(found, 6))):
            made.dataset = {"images": [{"id": row} for row in rows], "categories": [{"id": 1}], "annotations": [*boxes]}
            made.createIndex()
        judged = COCOeval(truth, answers, "bbox")
        judged.params.areaRng, judged.params.areaRngLbl = [[0, float("inf")]], ["all"]
        most = max((len(made) for made in answers.imgToAnns.values()), default=0)
        judged.params.maxDets = [max(_COCO_MOST, most)]
        judged.evaluate()
        judged.accumulate()
    precision = judged.eval["precision"]  # by IoU, recall, class, area, number of answers
    return AveragePrecision(float(precision[0].mean()), float(precision.mean()))


def _boxes(flat: array[float], width: int) -> Iterator[dict[str, Any]]:
    """As COCO annotations; ids count from 1, since 0 means unmatched to pycocotools."""
    for number, start in enumerate(range(0, len(flat), width), 1):
        row, x_min, y_min, x_max, y_max, *score = flat[start : start + width]
        across, down = x_max - x_min, y_max - y_min
        box = {"id": number, "image_id": int(row), "category_id": 1, "iscrowd": 0, "area": across * down}
        yield {**box, "bbox": [x_min, y_min, across, down], **({"score": score[0]} if score else {})}
