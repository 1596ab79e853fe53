"""What it costs to bring pictures to a model: decoding and cutting, exact and fast, and the rows around them.

    python benchmarks/data.py pictures      images/s of one core: plain Pillow, exact and fast, in turns
    python benchmarks/data.py difference    how far the pixels of fast are from those of exact, by size
    python benchmarks/data.py rows          rows/s through reader, null model and writer, 100 KB a row
    python benchmarks/data.py memory        resident set over 50,000 rows

Without a name, all but the last. No model is loaded. Times of ``pictures``, and rates "of a core", are by the thread's
or the process's own time, so that other work on the machine disturbs them less; ratios are medians of pairs measured
one right after the other.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from stages import busy_elsewhere, commit, machine, photos, reading, writing

from photon.core import Image, ImageInfo
from photon.engine.null import NullEngine
from photon.images.decode import DecodePolicy, decode
from photon.job.measure import CHUNK_ROWS
from photon.job.run import run
from photon.manifest.manifest import Manifest
from photon.models.config import VisionConfig
from photon.models.tiling import canvas_size, crop_count, cut_crops, select_tiling

ROOT = Path(__file__).parents[1]
VISION = VisionConfig()
EXACT, FAST = DecodePolicy(), DecodePolicy(decode="fast")
CANVAS = partial(canvas_size, vision=VISION)
ROW_BYTES = 100_000
LANCZOS = PIL.Image.Resampling.LANCZOS
SIZES = ((640, 480), (1920, 1080), (4000, 3000), (8000, 6000))

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


# One picture.


def plain(data: bytes) -> Pixels:
    """The same crops as one would write it down: no checks, no policy, memory of its own."""
    picture = PIL.Image.open(io.BytesIO(data)).convert("RGB")
    rows, columns = tiling = select_tiling(picture.height, picture.width, VISION)
    crop, window = VISION.crop_size, VISION.window
    crops = [np.asarray(picture.resize((crop, crop), LANCZOS))]
    if tiling != (1, 1):
        size = (columns * window + VISION.margin, rows * window + VISION.margin)
        resized = np.asarray(picture.resize(size, LANCZOS))
        corners = [(y * window, x * window) for y in range(rows) for x in range(columns)]
        crops += [resized[y : y + crop, x : x + crop] for y, x in corners]
    return np.stack(crops)


def crops_of(data: bytes, policy: DecodePolicy, out: Pixels) -> Pixels:
    """As the engine makes them, into memory that is there already."""
    picture, info = decode(data, policy, CANVAS)
    tiling = select_tiling(info.height, info.width, VISION)
    made = out[: crop_count(tiling)]
    cut_crops(picture, tiling, VISION, made, fast=policy.fast)
    return made


def room() -> Pixels:
    return np.zeros((VISION.max_crops + 1, VISION.crop_size, VISION.crop_size, 3), np.uint8)


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def pictures(repeats: int) -> dict[str, Any]:
    """Milliseconds of one core for a 640x480 picture, and ratios, over the same photos in turns."""
    images, out = photos(), room()
    ways: dict[str, Callable[[bytes], object]] = {
        "plain": plain,
        "exact": lambda data: crops_of(data, EXACT, out),
        "fast": lambda data: crops_of(data, FAST, out),
        "decode alone": lambda data: decode(data, EXACT),
        "decode alone, plain": lambda data: PIL.Image.open(io.BytesIO(data)).convert("RGB"),
    }
    for way in ways.values():
        way(images[0])
    assert np.array_equal(plain(images[0]), crops_of(images[0], EXACT, out))
    taken: dict[str, list[float]] = {name: [] for name in ways}
    order, dice = list(ways), random.Random(0)
    for _ in range(repeats):
        for data in images:
            dice.shuffle(order)  # none always comes after the same other
            for name in order:
                taken[name].append(seconds(partial(ways[name], data)))

    def ratio(slow: str, quick: str) -> float:
        return statistics.median(a / b for a, b in zip(taken[slow], taken[quick], strict=True))

    ms = {name: 1e3 * statistics.median(times) for name, times in taken.items()}
    crops = {name: ms[name] - ms["decode alone"] for name in ("exact", "fast")}
    return {
        "milliseconds": ms,
        "images_per_second_of_a_core": {name: 1e3 / value for name, value in ms.items()},
        "crops_alone_milliseconds": crops,
        "fast / exact": ratio("exact", "fast"),
        "exact / plain": ratio("plain", "exact"),
        "pairs": len(taken["fast"]),
    }


def large_photo(width: int, height: int) -> bytes:
    """A JPEG of that size, of 640x480 photos side by side, sharp to the pixel."""
    cells = [PIL.Image.open(io.BytesIO(data)) for data in photos()]
    made = PIL.Image.new("RGB", (width, height))
    for n, (y, x) in enumerate((y, x) for y in range(0, height, 480) for x in range(0, width, 640)):
        made.paste(cells[n % len(cells)], (x, y))
    file = io.BytesIO()
    made.save(file, "JPEG", quality=90)
    return file.getvalue()


def difference() -> dict[str, Any]:
    """Of the crops' pixels, in units of 255: mean, 99th percentile and largest; and how much time fast takes less."""
    found, first, second = {}, room(), room()
    for size in SIZES:
        images = photos()[:16] if size == SIZES[0] else [large_photo(*size)]
        apart, gains = [], []
        for data in images:
            taken = [seconds(partial(crops_of, data, *way)) for way in ((EXACT, first), (FAST, second))]
            exact, fast = crops_of(data, EXACT, first), crops_of(data, FAST, second)
            apart.append(np.abs(exact.astype(np.int16) - fast))
            gains.append(taken[0] / taken[1])
        every = np.concatenate(apart)
        found[f"{size[0]}x{size[1]}"] = {
            "mean": float(every.mean()),
            "p99": float(np.percentile(every, 99)),
            "max": int(every.max()),
            "decoded at": "x".join(map(str, decode(images[0], FAST, CANVAS)[0].size)),
            "fast / exact": statistics.median(gains),
        }
    return found


# Rows.


class Undecoded(NullEngine):
    """The null engine without its decoding: what is left is reading, passing on and writing."""

    def _prepare(self, image: Image) -> tuple[ImageInfo, None]:
        return ImageInfo(640, 480), None


def write_rows(folder: Path, rows: int, files: int) -> None:
    """``files`` names of one file of ``rows`` rows. The pictures are small and padded: 100 KB, and soon decoded."""
    file = io.BytesIO()
    PIL.Image.open(io.BytesIO(photos()[0])).resize((64, 48)).save(file, "JPEG")
    noise = np.random.default_rng(0)
    table = {
        "image": [file.getvalue() + noise.bytes(ROW_BYTES - len(file.getvalue())) for _ in range(rows)],
        "name": [f"{n:08d}" for n in range(rows)],
    }
    first = folder / "rows-000.parquet"
    pq.write_table(pa.table(table), first, row_group_size=100, compression=None, use_dictionary=False)
    for n in range(1, files):
        os.link(first, folder / f"rows-{n:03}.parquet")


def manifest(folder: Path) -> Manifest:
    settings = {
        "version": 1,
        "input": {"parquet": [str(folder / "rows-*.parquet")], "id": "name"},
        "model": {"path": "photon://null"},
        "tasks": [{"name": "things", "type": "detect", "objects": ["cup"]}],
        "output": {"dir": str(folder / "out")},
    }
    return Manifest.model_validate(settings)


def rows(count: int, repeats: int) -> dict[str, Any]:
    """Rows per second of the whole way, and of its two ends alone, in turns; by the clock and by the process's time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, count, 1)
        read = reading(folder / "rows-000.parquet")
        run(manifest(folder), fresh=True, engine=Undecoded())
        part = pa.ipc.open_file(next((folder / "out/data").iterdir())).read_all().to_pylist()[:CHUNK_ROWS]
        write = writing(folder / "parts", [{**row, "spots": None, "caption": None} for row in part])

        def whole() -> float:
            summary = run(manifest(folder), fresh=True, engine=Undecoded())
            return summary.rows / summary.seconds

        done = {"reader": (read, count), "writer": (write, len(part)), "reader, null model, writer": (whole, count)}
        rates: dict[str, list[float]] = {name: [] for name in done}
        of_core: dict[str, list[float]] = {name: [] for name in done}
        for _ in range(repeats):
            for stage, (work, rows) in done.items():
                start = time.process_time()
                rates[stage].append(round(work(), 1))
                of_core[stage].append(round(rows / (time.process_time() - start), 1))
    return {"rows": count, "bytes_a_row": ROW_BYTES, "per_second": rates, "per_second_of_a_core": of_core}


def memory(count: int) -> dict[str, Any]:
    """Resident set in MB by row, in a process of its own. Each row is read, decoded, answered and written."""
    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name), min(count, 1000), max(1, count // 1000))
        command = [sys.executable, __file__, "memory", "--inside", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return dict(json.loads(done.stdout))


def memory_inside(folder: Path) -> dict[str, Any]:
    from tests.job.soak import MemoryWatch  # the process above set the path

    watch = MemoryWatch(every=500)
    summary = run(manifest(folder), fresh=True, progress=watch)
    resident = list(watch.resident.values())
    settled, end = resident[len(resident) // 10 : len(resident) // 5], resident[-len(resident) // 10 :]
    grown = (statistics.median(end) - statistics.median(settled)) / 1e6
    steps = {n: round(size / 1e6, 1) for n, size in watch.resident.items() if n % 5000 == 0}
    return {"rows": summary.rows, "failed": summary.failed, "megabytes": steps, "grown_megabytes": round(grown, 1)}


def main() -> None:
    torch.set_num_threads(1)  # one core is what is measured
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", help="pictures, difference, rows or memory (all but the last)")
    parser.add_argument("--rows", type=int, metavar="N", help="rows to read (2,000 for rows, 50,000 for memory)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="measurements of each (3)")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(memory_inside(arguments.inside)))
        return
    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "pictures": lambda: pictures(arguments.repeats),
        "difference": difference,
        "rows": lambda: rows(arguments.rows or 2000, arguments.repeats),
        "memory": lambda: memory(arguments.rows or 50_000),
    }
    if unknown := set(arguments.what) - set(ways):
        parser.error(f"{sorted(unknown)[0]} is none of {', '.join(ways)}")
    about = {"machine": machine(), "commit": commit()}
    start, before = time.perf_counter(), busy_elsewhere()
    found = {name: ways[name]() for name in arguments.what or ("pictures", "difference", "rows")}
    about["cores_busy_elsewhere"] = round((busy_elsewhere() - before) / (time.perf_counter() - start), 2)
    print(json.dumps({**about, **found}, indent=2))


if __name__ == "__main__":
    main()
