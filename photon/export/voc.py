"""Pascal VOC: Annotations/ with one XML file for each picture, JPEGImages/, and ImageSets/Main/ with the splits.

Pixels are whole and counted from 1, and the last one is in the box. Scores have no place.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from photon.export.names import stem_and_suffix, xml_text
from photon.export.place import place_picture
from photon.export.plan import Plan
from photon.export.rows import ExportRow

_WHOLE = "trainval"


class Voc:
    def __init__(self, root: Path, plan: Plan) -> None:
        self._plan = plan
        self._annotations, self._images = root / "Annotations", root / "JPEGImages"
        sets = root / "ImageSets" / "Main"
        for folder in (self._annotations, self._images, sets):
            folder.mkdir(parents=True)
        self._sets: dict[str, IO[str]] = {
            part: (sets / f"{part or _WHOLE}.txt").open("w", encoding="utf-8") for part in plan.parts or ("",)
        }

    def add(self, row: ExportRow) -> None:
        name = place_picture(row, self._images, self._plan.images == "link", (self._annotations, ".xml"))
        stem = stem_and_suffix(name)[0]
        tree = ElementTree.ElementTree(_annotation(row, name))
        ElementTree.indent(tree)
        tree.write(self._annotations / f"{stem}.xml", encoding="utf-8")
        self._sets[row.part].write(f"{stem}\n")

    def close(self) -> None:
        for file in self._sets.values():
            file.close()


def _annotation(row: ExportRow, name: str) -> ElementTree.Element:
    top = ElementTree.Element("annotation")
    _texts(top, folder="JPEGImages", filename=name)
    _texts(ElementTree.SubElement(top, "source"), image=row.row_id)
    _texts(ElementTree.SubElement(top, "size"), width=row.view.width, height=row.view.height, depth=3)
    _texts(top, segmented=0)
    for found in row.boxes:
        thing = ElementTree.SubElement(top, "object")
        _texts(thing, name=found.label, pose="Unspecified", truncated=0, difficult=0)
        left, upper, right, lower = row.view.voc_px(found.corners)
        _texts(ElementTree.SubElement(thing, "bndbox"), xmin=left, ymin=upper, xmax=right, ymax=lower)
    return top


def _texts(parent: ElementTree.Element, **texts: object) -> None:
    for tag, text in texts.items():
        ElementTree.SubElement(parent, tag).text = xml_text(text)
