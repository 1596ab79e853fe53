"""Small inputs for tests: pictures and Parquet files of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DEFAULT_TASKS = """\
  - {name: things, type: detect, objects: [cat, dog]}
  - {name: spots, type: point, objects: ["{subject}"]}
  - {name: cap, type: caption, length: short}
  - {name: ask, type: query, question: "Is there a {subject}?"}
"""


def png(color: str = "red", size: tuple[int, int] = (40, 30)) -> bytes:
    """A small encoded picture."""
    from PIL import Image

    made = io.BytesIO()
    Image.new("RGB", size, color).save(made, "PNG")
    return made.getvalue()


def write_parquet(path: Path, images: Sequence[bytes | None], **columns: Sequence[Any]) -> Path:
    """A Parquet file with an ``image`` struct column, ``name`` and ``subject``; ``columns`` replace or add."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = [None if image is None else {"bytes": image, "path": f"{i}.png"} for i, image in enumerate(images)]
    data: dict[str, Any] = {
        "image": pa.array(cells, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "name": [f"row{i}" for i in range(len(images))],
        "subject": ["cat"] * len(images),
    }
    pq.write_table(pa.table({**data, **columns}), path, row_group_size=3)
    return path
