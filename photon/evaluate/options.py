"""What an evaluation is asked for: where truth stands and in which form, and what counts as right."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from photon.errors import UsageError

Layout: TypeAlias = Literal["xyxy", "xywh"]


@dataclass(frozen=True, slots=True)
class TruthOptions:
    """``column`` of the output, or of ``file`` (Parquet, a path, glob or URL), whose rows are found by their column
    ``on``. ``layout`` is that of boxes given as four numbers; ``pixels``: coordinates are pixels of the recorded frame,
    not shares of it. ``task``: judge this one alone."""

    column: str
    file: str | None = None
    on: str | None = None
    task: str | None = None
    layout: Layout | None = None
    pixels: bool = False

    def __post_init__(self) -> None:
        if self.on is not None and self.file is None:
            raise UsageError("--on goes with --truth-file: it names the column that finds a row in that file")


@dataclass(frozen=True, slots=True)
class Judging:
    """``iou``: how much of their union a box and its truth share at least, in (0, 1]. ``min_score``: answers below it
    are left out, in [0, 1]."""

    iou: float = 0.5
    min_score: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.iou <= 1:
            raise UsageError(f"--iou is above 0 and at most 1, not {self.iou:g}")
        if not 0 <= self.min_score <= 1:
            raise UsageError(f"--min-score is from 0 to 1, not {self.min_score:g}")

    @property
    def lowest(self) -> float:
        """The lowest stored score that counts. Scores are float32: 0.9 means what 0.9 was stored as."""
        return float(struct.unpack("f", struct.pack("f", self.min_score))[0])

    def counts(self, score: float) -> bool:
        """Whether an answer with this score counts."""
        return score >= self.lowest


def layout_of(text: str | None) -> Layout | None:
    """Raises ``UsageError`` for a layout that is not known."""
    if text not in (None, "xyxy", "xywh"):
        raise UsageError(f"--boxes is xyxy (two corners) or xywh (x, y, width, height), not {text}")
    return cast("Layout | None", text)
