"""YOLO: labels/ beside images/, one text file for each picture, and data.yaml, as Ultralytics reads them."""

from __future__ import annotations

from pathlib import Path

from photon.export.frame import cxcywh
from photon.export.json_list import as_json
from photon.export.names import stem_and_suffix
from photon.export.place import place_picture
from photon.export.plan import Plan
from photon.export.rows import ExportRow

_WHOLE = "train"  # the part that all pictures are in without splits


class Yolo:
    def __init__(self, root: Path, plan: Plan) -> None:
        self._plan = plan
        self._images, self._labels = root / "images", root / "labels"
        parts = plan.parts or (_WHOLE,)
        for part in parts:
            (self._labels / part).mkdir(parents=True)
            (self._images / part).mkdir(parents=True)
        (root / "data.yaml").write_text(_data(parts, plan.classes("objects")), encoding="utf-8")

    def add(self, row: ExportRow) -> None:
        part = row.part or _WHOLE
        labels = self._labels / part
        name = place_picture(row, self._images / part, self._plan.images == "link", (labels, ".txt"))
        lines = (" ".join(map(str, (found.number, *cxcywh(found.corners)))) for found in row.boxes)
        text = "".join(f"{line}\n" for line in lines)
        (labels / f"{stem_and_suffix(name)[0]}.txt").write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Everything is written already."""


def _data(parts: tuple[str, ...], classes: tuple[str, ...]) -> str:
    """Paths start from the file's own folder. Trainers want both train and val, so each stands in for the other where
    it is missing."""
    named = {name: name if name in parts else parts[0] for name in ("train", "val")}
    named |= {part: part for part in parts}
    lines = [f"{name}: images/{part}" for name, part in named.items()]
    # JSON's strings are YAML's too, whatever a label is.
    lines += ["names:" if classes else "names: {}"]
    lines += [f"  {number}: {as_json(label)}" for number, label in enumerate(classes)]
    return "".join(f"{line}\n" for line in lines)
