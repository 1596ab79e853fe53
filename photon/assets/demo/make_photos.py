"""Makes photos.parquet, the demo's eight photos, from the pictures that scikit-learn and scikit-image ship.

Run it by hand, with both installed: ``python photon/assets/demo/make_photos.py``. Nothing else imports it. Where each
photo comes from and what its licence is stands in LICENCES.md and in the file's own columns.
"""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

#: Longest side in pixels.
LONGEST = 640
QUALITY = 85


class Photo(NamedTuple):
    """``source`` is a path inside an installed package; ``subject`` fills the demo's ``{subject}``."""

    name: str
    source: str
    subject: str
    licence: str
    attribution: str


PHOTOS = (
    Photo("china.jpg", "sklearn/datasets/images/china.jpg", "temple", "CC BY 2.0", "danielbuechele, on Flickr"),
    Photo("flower.jpg", "sklearn/datasets/images/flower.jpg", "flower", "CC BY 2.0", "vultilion, on Flickr"),
    Photo("astronaut.jpg", "skimage/data/astronaut.png", "astronaut", "public domain", "NASA"),
    Photo("chelsea.jpg", "skimage/data/chelsea.png", "cat", "CC0 1.0", "Stefan van der Walt"),
    Photo("coffee.jpg", "skimage/data/coffee.png", "cup", "CC0 1.0", "Rachel Michetti, Pikolo Espresso Bar"),
    Photo("rocket.jpg", "skimage/data/rocket.jpg", "rocket", "public domain", "SpaceX"),
    Photo("camera.jpg", "skimage/data/camera.png", "camera", "CC0 1.0", "Lav Varshney"),
    Photo("hubble.jpg", "skimage/data/hubble_deep_field.jpg", "galaxy", "public domain", "NASA, ESA, HubbleSite"),
)


def encoded(source: str) -> bytes:
    """The picture as a JPEG of at most ``LONGEST`` pixels a side, without metadata."""
    package, _, inside = source.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed; pip install scikit-learn scikit-image")
    with Image.open(Path(spec.origin).parent / inside) as picture:
        picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
        made = io.BytesIO()
        picture.save(made, "JPEG", quality=QUALITY, optimize=True)
    return made.getvalue()


def main() -> None:
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table(
        {
            "image": pa.array([{"bytes": encoded(p.source), "path": p.name} for p in PHOTOS], image),
            "file_name": [photo.name for photo in PHOTOS],
            "subject": [photo.subject for photo in PHOTOS],
            "licence": [photo.licence for photo in PHOTOS],
            "attribution": [photo.attribution for photo in PHOTOS],
        }
    )
    path = Path(__file__).with_name("photos.parquet")
    pq.write_table(table, path, compression="none", row_group_size=4)  # JPEG does not shrink; two row groups to read
    print(f"{path}: {table.num_rows} photos, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
