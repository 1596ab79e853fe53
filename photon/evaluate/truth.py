"""Truth as it stands in a cell, checked and brought into one form: boxes in [0, 1] of the recorded frame, or text.

Every problem is a ``ValueError`` that says what is there and what to do; the caller knows the file, column and row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from photon.evaluate.options import Layout

#: (x_min, y_min, x_max, y_max)
Corners: TypeAlias = tuple[float, float, float, float]
CORNERS = ("x_min", "y_min", "x_max", "y_max")
_LABELS = ("label", "category")
_WANTED = "write a list of {label, x_min, y_min, x_max, y_max}, or bbox and category as datasets does"
#: How far outside of the frame, as a share of its side, an annotator's box may reach; it is clamped.
_OUTSIDE = 0.05


@dataclass(frozen=True, slots=True)
class TrueBox:
    """``corners`` in [0, 1] of the frame that the row records, x to the right, y down."""

    label: str
    corners: Corners

    @property
    def has_area(self) -> bool:
        x_min, y_min, x_max, y_max = self.corners
        return x_max > x_min and y_max > y_min


@dataclass(frozen=True, slots=True)
class BoxForm:
    """How a cell spells boxes. ``names``: those of the classes, for categories that are numbers."""

    layout: Layout | None = None
    pixels: bool = False
    names: Sequence[str] | None = None

    def read(self, value: Any, size: tuple[int, int] | None) -> list[TrueBox] | None:
        """The boxes of one cell, None for a struct of nulls, which is no truth. ``size`` is the picture's width and
        height in pixels, None where the row records none: then pixel boxes stay pixels, which will do for counting."""
        entries = _entries(value)
        return None if entries is None else [self._box(entry, size) for entry in entries]

    def _box(self, entry: Any, size: tuple[int, int] | None) -> TrueBox:
        if not isinstance(entry, Mapping):
            raise ValueError(f"holds {shown(entry)} in place of a box; {_WANTED}")
        key = next((key for key in _LABELS if key in entry), None)
        if key is None:
            raise ValueError(f"holds a box without label or category, with {', '.join(entry)}; {_WANTED}")
        label = _name(entry[key], self.names, key)
        corners = self._corners(entry)
        if not all(isinstance(v, (int, float)) and math.isfinite(v) for v in corners):
            raise ValueError(f"holds a box of {label!r} with {shown(corners)}; write four numbers")
        x_min, y_min, x_max, y_max = corners
        if x_max < x_min or y_max < y_min:
            other = "; is it x, y, width, height (--boxes xywh)?" if self.layout == "xyxy" and "bbox" in entry else ""
            raise ValueError(f"holds a box of {label!r} that ends before it begins, {shown(corners)}{other}")
        if self.pixels and size is None:
            return TrueBox(label, corners)
        width, height = (size or (1, 1)) if self.pixels else (1, 1)
        return TrueBox(label, self._clamped((x_min / width, y_min / height, x_max / width, y_max / height), label))

    def _corners(self, entry: Mapping[str, Any]) -> Corners:
        if "bbox" not in entry:
            missing = [name for name in CORNERS if name not in entry]
            if missing:
                raise ValueError(f"holds a box without {', '.join(missing)}; {_WANTED}")
            return (entry["x_min"], entry["y_min"], entry["x_max"], entry["y_max"])
        bbox = entry["bbox"]
        if not isinstance(bbox, Sequence) or len(bbox) != 4:
            raise ValueError(f"holds the bbox {shown(bbox)}; write four numbers")
        if self.layout is None:
            raise ValueError(
                "holds boxes as four numbers; say what they are with --boxes xywh (x, y, width, height, as COCO) "
                "or --boxes xyxy (two corners)"
            )
        a, b, c, d = bbox
        if self.layout == "xywh" and None not in bbox:
            return (a, b, a + c, b + d)
        return (a, b, c, d)

    def _clamped(self, corners: Corners, label: str) -> Corners:
        if min(corners) < -_OUTSIDE or max(corners) > 1 + _OUTSIDE:
            told = f"holds a box of {label!r} that reaches out of the picture, {shown(corners)} of its sides"
            if self.pixels:
                raise ValueError(f"{told}; truth has to be in the frame that the row's image records")
            raise ValueError(f"{told}; say --pixels if these are pixels, else clip it to [0, 1]")
        x_min, y_min, x_max, y_max = (min(max(float(v), 0.0), 1.0) for v in corners)
        return (x_min, y_min, x_max, y_max)


def read_answer(value: Any, names: Sequence[str] | None = None) -> str:
    """The text of one cell: a string as it is, an integer in digits or, with ``names``, the name of that class."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if names is None else _name(value, names, "the answer")
    advice = "write yes or no as the answer should read" if isinstance(value, bool) else "write a text or an integer"
    raise ValueError(f"holds {shown(value)} in place of an answer; {advice}")


def shown(value: Any) -> str:
    """A value as a message shows it, at most 60 characters."""
    if isinstance(value, tuple) and all(isinstance(v, float) for v in value):
        value = [float(f"{v:.4g}") for v in value]
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _entries(value: Any) -> list[Any] | None:
    """A list's entries; of a struct of lists, the way ``datasets`` stores a list of structs, a mapping for each. None
    where all lists are null."""
    if isinstance(value, Mapping):
        lists = {key: value[key] for key in ("bbox", *_LABELS, *CORNERS) if key in value}
        if lists and all(cells is None for cells in lists.values()):
            return None
        for key, cells in lists.items():
            if not isinstance(cells, list):
                raise ValueError(f"holds {shown(cells)} as {key} where a list goes; {_WANTED}")
        if not lists:
            raise ValueError(f"holds {', '.join(value)} in place of boxes; {_WANTED}")
        lengths = {key: len(cells) for key, cells in lists.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{count} of {key}" for key, count in lengths.items())
            raise ValueError(f"holds lists that differ in length, {told}; write one of each for every box")
        return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]
    if isinstance(value, list):
        return value
    raise ValueError(f"holds {shown(value)} in place of boxes; {_WANTED}")


def _name(value: Any, names: Sequence[str] | None, what: str) -> str:
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"holds {shown(value)} as {what}; write the name of a class")
    if names is None:
        raise ValueError(f"holds the number {value} as {what}, and the column has no ClassLabel; write class names")
    if not 0 <= value < len(names):
        raise ValueError(f"holds the number {value} as {what}, and its ClassLabel has {len(names)} names, from 0 on")
    return names[value]
