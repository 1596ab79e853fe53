"""Seconds and memory that a plan takes over many Parquet files: made, and looked at again.

    python benchmarks/plan.py [--files 10000] [--rows 3] [--json]

The files hold small pictures and lie in a temporary folder, so what is measured is what each file costs: to open it,
to read its footer and its ends, to write it down.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import tempfile
import time
from pathlib import Path

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from photon.audit.prepare import prepare
from photon.manifest.manifest import Manifest


def write_files(folder: Path, files: int, rows: int) -> None:
    picture = io.BytesIO()
    PIL.Image.new("RGB", (640, 480), "red").save(picture, "PNG")
    images = pa.array([picture.getvalue()] * rows)
    for n in range(files):
        names = [f"{n}-{row}" for row in range(rows)]
        pq.write_table(pa.table({"image": images, "name": names}), folder / f"{n:06d}.parquet")


def measure(files: int, rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), files, rows)
        manifest = Manifest.model_validate(
            {
                "version": 1,
                "input": {"parquet": f"{folder}/*.parquet", "id": "name"},
                "model": {"path": "photon://null"},
                "tasks": [{"name": "things", "type": "detect", "objects": ["cat"]}],
                "output": {"dir": f"{folder}/out"},
            }
        )
        figures: dict[str, float] = {"files": files, "rows": files * rows}
        for what in ("made", "again"):
            wall, cpu = time.monotonic(), time.process_time()
            made = prepare(manifest)
            figures |= {f"{what}_s": time.monotonic() - wall, f"{what}_cpu_s": time.process_time() - cpu}
            assert made.rows == files * rows
        return {**figures, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=3, help="of each file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.files, options.rows)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:<12}{value:>12,.1f}")


if __name__ == "__main__":
    main()
