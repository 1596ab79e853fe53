"""Label Studio: tasks.json to import, with the answers as predictions, config.xml for the project, and images/.

Pictures are served by its local storage, whose root has to be this folder; without pictures, ``image`` is the name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from photon.export.about import model_of, provenance
from photon.export.frame import percent, xywh
from photon.export.json_list import JsonList
from photon.export.names import xml_text
from photon.export.place import place_picture
from photon.export.plan import KINDS, Plan
from photon.export.rows import ExportRow, FoundBox, FoundPoint

_IMAGE = "image"  # the name of the picture's tag, and of its field in a task
_SPOT = 1.0  # a keypoint's size on the screen, in percent of the width
_TAGS = {"objects": "RectangleLabels", "points": "KeyPointLabels"}


class LabelStudio:
    def __init__(self, root: Path, plan: Plan) -> None:
        self._plan = plan
        self._model = model_of(plan.output)
        self._about = {key: value for key, value in provenance(plan).items() if key in ("tasks", "classes")}
        self._images = root / "images"
        if plan.images != "none":
            self._images.mkdir()
        tree = ElementTree.ElementTree(_config(plan))
        ElementTree.indent(tree)
        tree.write(root / "config.xml", encoding="utf-8")
        self._tasks = JsonList(root / "tasks.json")

    def add(self, row: ExportRow) -> None:
        address = row.name
        if row.picture is not None:
            name = place_picture(row, self._images, self._plan.images == "link")
            address = f"/data/local-files/?d={quote(f'images/{name}', safe='/')}"
        data = {_IMAGE: address, "row_id": row.row_id, "frame": row.view.frame, "photon_batch": self._about}
        if row.part:
            data["split"] = row.part
        self._tasks.add({"data": data, "predictions": [{"model_version": self._model, "result": _regions(row)}]})

    def close(self) -> None:
        self._tasks.close()


def _regions(row: ExportRow) -> list[dict[str, Any]]:
    found: tuple[FoundBox | FoundPoint, ...] = (*row.boxes, *row.points)
    marks = [_mark(one, row, number) for number, one in enumerate(found)]
    texts = [
        {
            "id": f"text-{task}",
            "type": "textarea",
            "from_name": task,
            "to_name": _IMAGE,
            "value": {"text": [text]},
        }
        for task, text in row.texts.items()
    ]
    return [*marks, *texts]


def _mark(found: FoundBox | FoundPoint, row: ExportRow, number: int) -> dict[str, Any]:
    if isinstance(found, FoundBox):
        x, y, width, height = percent(xywh(found.corners))
        kind, value = "rectanglelabels", {"x": x, "y": y, "width": width, "height": height, "rotation": 0}
    else:
        x, y = 100 * found.x, 100 * found.y
        kind, value = "keypointlabels", {"x": x, "y": y, "width": _SPOT}
    return {
        "id": f"mark-{number}",
        "type": kind,
        "from_name": found.task,
        "to_name": _IMAGE,
        "original_width": row.view.width,
        "original_height": row.view.height,
        "image_rotation": 0,
        "value": {**value, kind: [xml_text(found.label)]},
        "score": found.score,
    }


def _config(plan: Plan) -> ElementTree.Element:
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Image", name=_IMAGE, value=f"${_IMAGE}")
    for task in plan.tasks:
        tag = _TAGS.get(KINDS[task.type])
        if tag is None:
            ElementTree.SubElement(view, "TextArea", name=task.name, toName=_IMAGE, editable="true")
            continue
        labels = ElementTree.SubElement(view, tag, name=task.name, toName=_IMAGE)
        for number, label in enumerate(plan.task_classes[task.name]):
            # Its own export to COCO asks every keypoint for a number.
            ElementTree.SubElement(labels, "Label", value=xml_text(label), model_index=str(number))
    return view
