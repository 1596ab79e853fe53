"""FiftyOne: samples.json with a field for each task, metadata.json, and pictures in data/.

The form that ``fiftyone.types.FiftyOneDataset`` reads where metadata.json names no version of its own database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from photon.errors import UsageError
from photon.export.about import provenance
from photon.export.frame import xywh
from photon.export.json_list import JsonList, as_json
from photon.export.place import place_picture
from photon.export.plan import Plan
from photon.export.rows import ExportRow

_TAKEN = (
    *("id", "filepath", "tags", "metadata", "media_type", "media_reference", "row_id", "frames", "field_names"),
    *("created_at", "last_modified_at", "in_dataset", "dataset", "dataset_id", "filename", "group"),
)


class FiftyOne:
    def __init__(self, root: Path, plan: Plan) -> None:
        for task in plan.tasks:
            if task.name in _TAKEN or task.name.startswith("_"):
                raise UsageError(
                    f"FiftyOne has a field {task.name} of its own; leave the task out (--task names those to take)"
                )
        self._plan = plan
        self._data = root / "data"
        if plan.images != "none":
            self._data.mkdir()
        info = {"classes": plan.task_classes, "photon_batch": provenance(plan)}
        metadata = {"media_type": "image", "info": info}
        (root / "metadata.json").write_text(as_json(metadata) + "\n", encoding="utf-8")
        self._samples = JsonList(root / "samples.json", '{"samples": [\n', "\n]}\n")

    def add(self, row: ExportRow) -> None:
        path = row.name
        if row.picture is not None:
            path = f"data/{place_picture(row, self._data, self._plan.images == 'link')}"
        size = {"_cls": "ImageMetadata", "width": row.view.width, "height": row.view.height}
        sample: dict[str, Any] = {
            "filepath": path,
            "tags": [row.part] if row.part else [],
            "metadata": size,
            "_media_type": "image",
            "row_id": row.row_id,
        }
        for task in self._plan.of_kind("objects"):
            sample[task.name] = {"_cls": "Detections", "detections": _detections(row, task.name)}
        for task in self._plan.of_kind("points"):
            sample[task.name] = {"_cls": "Keypoints", "keypoints": _keypoints(row, task.name)}
        self._samples.add({**sample, **row.texts})

    def close(self) -> None:
        self._samples.close()


def _detections(row: ExportRow, task: str) -> list[dict[str, Any]]:
    return [
        {
            "_cls": "Detection",
            "label": found.label,
            "bounding_box": list(xywh(found.corners)),
            "confidence": found.score,
        }
        for found in row.boxes
        if found.task == task
    ]


def _keypoints(row: ExportRow, task: str) -> list[dict[str, Any]]:
    return [
        {"_cls": "Keypoint", "label": found.label, "points": [[found.x, found.y]], "confidence": [found.score]}
        for found in row.points
        if found.task == task
    ]
