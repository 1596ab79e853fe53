"""What an export is asked for, and what each format is like: what it holds, and how its tools see a picture."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

from photon.data.schema import TaskKind
from photon.errors import UsageError
from photon.export.frame import FRAMES, Frame
from photon.export.splits import Splits
from photon.manifest.problems import nearest

Images: TypeAlias = Literal["copy", "link", "none"]


@dataclass(frozen=True, slots=True)
class Format:
    """``sees``: the frame in which this format's tools open a picture, None where they differ. ``images``: what
    becomes of pictures unless --images says otherwise. ``is_file``: --out is a file with rows that tell their frame,
    and without a place for pictures; else a folder."""

    name: str
    holds: frozenset[TaskKind]
    sees: Frame | None = None
    images: Images = "copy"
    is_file: bool = False


_ALL: frozenset[TaskKind] = frozenset(("objects", "points", "text"))
_BOXES: frozenset[TaskKind] = frozenset(("objects",))
FORMATS = {
    given.name: given
    for given in (
        Format("coco", frozenset(("objects", "points")), images="none"),
        Format("yolo", _BOXES, sees="oriented"),
        Format("voc", _BOXES),
        Format("fiftyone", _ALL, sees="oriented"),
        Format("labelstudio", _ALL, sees="oriented"),
        Format("hf", _ALL, sees="oriented"),
        Format("jsonl", _ALL, images="none", is_file=True),
        Format("parquet", _ALL, images="none", is_file=True),
    )
}


def format_of(name: str) -> Format:
    """Raises ``UsageError`` for a format that is not known."""
    if name not in FORMATS:
        raise UsageError(f"there is no format {name}; {nearest(name, [*FORMATS])}")
    return FORMATS[name]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """``tasks`` and ``classes``: these alone, all where empty. ``images``: copy or link pictures, or name them alone;
    None leaves it to the format. ``frame``: the one that the reader sees pictures in, None: the format's.
    ``bake_exif``: write pictures turned as they are meant to be seen, without the tag."""

    tasks: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    min_score: float = 0.0
    splits: Splits | None = None
    images: str | None = None
    frame: str | None = None
    bake_exif: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.min_score <= 1:
            raise UsageError(f"--min-score is from 0 to 1, not {self.min_score:g}")
        if self.images not in (None, "copy", "link", "none"):
            raise UsageError(f"--images is copy, link or none, not {self.images}")
        if self.frame is not None and self.frame not in FRAMES:
            raise UsageError(f"--frame is oriented or stored, not {self.frame}")
        if self.bake_exif and self.frame == "stored":
            raise UsageError("--bake-exif turns pictures, and --frame stored says that they are not; give one of them")

    @property
    def lowest(self) -> float:
        """The lowest stored score that counts. Scores are float32: 0.9 means what 0.9 was stored as."""
        return float(struct.unpack("f", struct.pack("f", self.min_score))[0])

    def images_of(self, kind: Format) -> Images:
        """Raises ``UsageError`` where ``kind`` has no place for what is asked."""
        chosen: Images = self.images or kind.images  # type: ignore[assignment]  # checked above
        if chosen != "none" and kind.is_file:
            raise UsageError(f"{kind.name} is one file and holds no pictures; leave --images out")
        if self.bake_exif and chosen != "copy":
            raise UsageError(f"--bake-exif writes pictures; give --images copy with it, not {chosen}")
        return chosen
