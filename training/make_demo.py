"""Makes scenes.parquet, the demo's pictures with what is in them: held-out scenes that no training has seen.

python training/make_demo.py [--scenes 200] [--out photon/assets/demo/scenes.parquet]

Every tenth one is large. ``truth`` holds the right answer to each of the demo's tasks, for ``photon-batch eval``.
"""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from training.questions import COLOUR, NAMES, Name, caption
from training.scene import SHAPES, Object, Scene
from training.scenes import MIXED, held_out, make_scene

OUT = Path(__file__).parents[1] / "photon" / "assets" / "demo" / "scenes.parquet"
FIRST = 2_000_000
"""Far from the held-out scenes that the reports are made on."""
LARGE = replace(MIXED, name="large", sides=(504, 900), tilings=(((2, 2), 0.4), ((2, 3), 0.3), ((3, 2), 0.3)))
QUALITY = 92
ASKED = (*SHAPES, "digit")
"""What the demo's ``things`` asks for."""

_CORNERS = ("x_min", "y_min", "x_max", "y_max")
_BOX = pa.struct({"label": pa.string(), **dict.fromkeys(_CORNERS, pa.float32())})
_TRUTH = pa.struct(
    {
        "things": pa.list_(_BOX),
        "spots": pa.list_(_BOX),
        "count": pa.string(),
        "colour": pa.string(),
        "caption": pa.string(),
    }
)
SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "image": pa.struct({"bytes": pa.binary(), "path": pa.string()}),
        "subject": pa.string(),
        "subjects": pa.string(),
        "question": pa.string(),
        "truth": _TRUTH,
    }
)


def row(n: int) -> dict[str, Any]:
    scene = make_scene(held_out(FIRST + n), LARGE if n % 10 == 9 else MIXED)
    dice = np.random.default_rng((n, 3))
    name = f"scene-{n:03}.jpg"
    subject = _subject(scene, dice)
    kind, colour = _coloured(scene, dice)
    return {
        "name": name,
        "image": {"bytes": _jpeg(scene), "path": name},
        "subject": subject.text,
        "subjects": subject.many,
        "question": COLOUR[0].format(kind),
        "truth": {
            "things": [_box(label, thing) for label in ASKED for thing in scene.objects if Name(label).fits(thing)],
            "spots": [_box(subject.text, thing) for thing in scene.objects if subject.fits(thing)],
            "count": str(sum(subject.fits(thing) for thing in scene.objects)),
            "colour": colour,
            "caption": caption(scene, "short"),
        },
    }


def _subject(scene: Scene, dice: np.random.Generator) -> Name:
    """A name that fits something in the scene, or in one of five scenes any name."""
    fitting = [name for name in NAMES if any(name.fits(thing) for thing in scene.objects)]
    names = fitting if fitting and dice.random() < 0.8 else list(NAMES)
    return names[dice.integers(len(names))]


def _coloured(scene: Scene, dice: np.random.Generator) -> tuple[str, str | None]:
    """A kind of which the scene holds one colour only, and that colour; without one, any kind and no right answer."""
    colours: dict[str, set[str]] = {}
    for thing in scene.objects:
        colours.setdefault(thing.kind, set()).add(thing.colour)
    sure = [(kind, *found) for kind, found in sorted(colours.items()) if len(found) == 1]
    return sure[dice.integers(len(sure))] if sure else (SHAPES[0], None)


def _box(label: str, thing: Object) -> dict[str, Any]:
    return {"label": label, **dict(zip(_CORNERS, thing.box, strict=True))}


def _jpeg(scene: Scene) -> bytes:
    file = io.BytesIO()
    PIL.Image.fromarray(scene.pixels).save(file, "JPEG", quality=QUALITY, subsampling=0)
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    table = pa.Table.from_pylist([row(n) for n in range(options.scenes)], schema=SCHEMA)
    pq.write_table(table, options.out, compression="zstd", row_group_size=50)
    print(f"{options.out}: {table.num_rows} scenes, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
