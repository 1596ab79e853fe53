"""COCO: boxes in annotations/instances.json, points as keypoints of one point in annotations/keypoints.json.

With splits, a file for each: instances_train.json. Names of pictures start from images/, or images/train/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photon.data.schema import TaskKind
from photon.export.about import provenance
from photon.export.json_list import JsonLists
from photon.export.place import place_picture
from photon.export.plan import Plan
from photon.export.rows import ExportRow, FoundBox, FoundPoint

_SORTS: dict[str, TaskKind] = {"instances": "objects", "keypoints": "points"}


class Coco:
    def __init__(self, root: Path, plan: Plan) -> None:
        self._plan = plan
        self._images = root / "images"
        (root / "annotations").mkdir()
        sorts = [sort for sort, kind in _SORTS.items() if plan.of_kind(kind)]
        self._files = {
            part: {sort: self._file(root / "annotations", sort, part) for sort in sorts} for part in plan.parts or ("",)
        }
        if plan.images != "none":
            for part in self._files:
                (self._images / part).mkdir(parents=True, exist_ok=True)

    def add(self, row: ExportRow) -> None:
        name = row.name
        if row.picture is not None:
            name = place_picture(row, self._images / row.part, self._plan.images == "link")
        image = {
            "id": row.index + 1,
            "file_name": name,
            "width": row.view.width,
            "height": row.view.height,
            "row_id": row.row_id,
            "frame": row.view.frame,
        }
        for sort, file in self._files[row.part].items():
            file.lists["images"].add(image)
            annotations = file.lists["annotations"]
            for found in row.boxes if sort == "instances" else row.points:
                cells = _box(found, row) if isinstance(found, FoundBox) else _point(found, row)
                head = {"id": annotations.count + 1, "image_id": row.index + 1, "category_id": found.number + 1}
                annotations.add({**head, **cells, "iscrowd": 0, "score": found.score, "task": found.task})

    def close(self) -> None:
        for files in self._files.values():
            for file in files.values():
                file.close()

    def _file(self, folder: Path, sort: str, part: str) -> JsonLists:
        shape: dict[str, Any] = {"keypoints": ["point"], "skeleton": []} if sort == "keypoints" else {}
        labels = self._plan.classes(_SORTS[sort])
        categories = [{"id": n, "name": label, **shape} for n, label in enumerate(labels, start=1)]
        info = {"description": "machine-made annotations", "photon_batch": provenance(self._plan)}
        path = folder / f"{sort}_{part}.json" if part else folder / f"{sort}.json"
        return JsonLists(path, {"info": info, "licenses": [], "categories": categories}, ("images", "annotations"))


def _box(found: FoundBox, row: ExportRow) -> dict[str, Any]:
    x, y, width, height = row.view.xywh_px(found.corners)
    return {"bbox": [x, y, width, height], "area": width * height}


def _point(found: FoundPoint, row: ExportRow) -> dict[str, Any]:
    x, y = row.view.xy_px(found.x, found.y)
    return {"keypoints": [x, y, 2], "num_keypoints": 1, "bbox": [x, y, 0, 0], "area": 0}
