"""What the headers of a sample of pictures tell: their sizes, how a model cuts them, and which cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from photon.data.row import Row
from photon.errors import ImageError
from photon.images.decode import DecodePolicy, probe
from photon.models.config import VisionConfig
from photon.models.tiling import crop_count, select_tiling


@dataclass(frozen=True, slots=True)
class Headers:
    """``sizes``: width and height of the smallest, the median and the largest picture, by pixels and as stored.
    ``tilings`` counts pictures by rows and columns of tiles, ``crops`` is the mean number of crops; ``codes`` counts
    those that cannot be read."""

    sampled: int
    sizes: tuple[tuple[int, int], ...]
    tilings: dict[tuple[int, int], int]
    crops: float
    codes: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "sampled": self.sampled,
            "sizes": dict(zip(("smallest", "median", "largest"), map(list, self.sizes), strict=False)),
            "tilings": {f"{rows}x{columns}": count for (rows, columns), count in self.tilings.items()},
            "crops": round(self.crops, 2),
            "codes": self.codes,
        }


def look_at_headers(rows: Iterable[Row], policy: DecodePolicy, vision: VisionConfig) -> Headers:
    """Reads no pixels. An EXIF orientation is not looked for: it swaps sides, which hardly changes the crops."""
    sizes: list[tuple[int, int]] = []
    codes: Counter[str] = Counter()
    sampled = 0
    for row in rows:
        sampled += 1
        if row.image is None:
            codes["IMAGE_MISSING"] += 1
            continue
        try:
            sizes.append(probe(row.image.source, policy))
        except ImageError as error:
            codes[error.code] += 1
    sizes.sort(key=lambda size: size[0] * size[1])
    tilings = Counter(select_tiling(height, width, vision) for width, height in sizes)
    crops = sum(crop_count(tiling) * count for tiling, count in tilings.items()) / max(1, len(sizes))
    some = (sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else ()
    return Headers(sampled, some, dict(tilings.most_common()), crops, dict(codes))
