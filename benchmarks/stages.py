"""Images per second of each stage before and after the model, and of the whole job around a model that costs nothing.

One run measures them all, in turns, over the same data: 640x480 JPEGs cut from the demo's photos, in a Parquet file in
a temporary folder. No model is loaded; what an engine adds is not measured here.

    python benchmarks/stages.py [--rows N] [--repeats N] [--json]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq

from photon.core import Box, Point
from photon.data.clip import clip_box, clip_point
from photon.data.parquet import ParquetSource
from photon.data.schema import TaskColumn, result_schema
from photon.data.writer import PartWriter
from photon.images.decode import DecodePolicy, decode
from photon.job.measure import CHUNK_ROWS
from photon.job.run import run
from photon.manifest.manifest import Manifest
from photon.models.config import VisionConfig
from photon.models.tiling import crop_count, cut_crops, select_tiling

ROOT = Path(__file__).parents[1]
SIZE = (640, 480)
DISTINCT = 64
QUALITY = 85
CORES = len(os.sched_getaffinity(0))
THREADS = sorted({*(2**n for n in range(CORES.bit_length())), CORES})
TASKS = [
    {"name": "things", "type": "detect", "objects": ["person", "cup"]},
    {"name": "spots", "type": "point", "objects": ["eye"]},
    {"name": "caption", "type": "caption"},
]

Stage = Callable[[], float]
_here = threading.local()


# The data.


def photos() -> list[bytes]:
    """``DISTINCT`` JPEGs, each a part of one of the demo's photos, some of them mirrored."""
    cells = pq.read_table(ROOT / "photon/assets/demo/photos.parquet", columns=["image"])["image"].to_pylist()
    whole = [PIL.Image.open(io.BytesIO(cell["bytes"])).convert("RGB") for cell in cells]
    dice, made = random.Random(0), []
    for n in range(DISTINCT):
        photo = whole[n % len(whole)]
        width = dice.uniform(0.7, 1) * min(photo.width, photo.height * SIZE[0] / SIZE[1])
        height = width * SIZE[1] / SIZE[0]
        left, top = dice.uniform(0, photo.width - width), dice.uniform(0, photo.height - height)
        part = photo.resize(SIZE, PIL.Image.Resampling.LANCZOS, (left, top, left + width, top + height))
        part = part.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT) if n % 2 else part
        file = io.BytesIO()
        part.save(file, "JPEG", quality=QUALITY)
        made.append(file.getvalue())
    return made


def write_rows(path: Path, images: list[bytes], count: int) -> None:
    """Row groups of 100, without a dictionary: every row's bytes are in the file, as in a collection of photos."""
    schema = pa.schema({"image": pa.struct({"bytes": pa.binary(), "path": pa.string()}), "name": pa.string()})
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, count, 100):
            numbers = range(first, min(first + 100, count))
            cells = [{"bytes": images[n % len(images)], "path": f"{n}.jpg"} for n in numbers]
            writer.write_table(pa.table({"image": cells, "name": [f"{n:08d}" for n in numbers]}, schema))


def result_rows(count: int) -> list[dict[str, object]]:
    """What a job writes for its rows: up to six boxes, up to three points and a caption."""
    dice = random.Random(0)
    return [result_row(n, dice) for n in range(count)]


def result_row(n: int, dice: random.Random) -> dict[str, object]:
    def place() -> float:
        return dice.randrange(1024) / 1024

    def scores() -> tuple[float, float, float]:
        exist, loc = dice.random(), dice.random()
        return exist * loc, exist, loc

    def answer(kind: str, value: object) -> dict[str, object]:
        counts = {"n_tokens": 12, "truncated": False, "task_fp": "0123456789abcdef"}
        return {"status": "ok", "error_code": None, "finish_reason": "stop", **counts, kind: value}

    boxes = [Box(place(), place(), place(), place(), dice.choice("ab"), *scores()) for _ in range(dice.randrange(7))]
    points = [Point(place(), place(), "eye", *scores()) for _ in range(dice.randrange(4))]
    words = ["a photo of", *dice.choices(["a cup", "the sky", "two people", "a cat", "and", "near"], k=12)]
    shape = {"width": SIZE[0], "height": SIZE[1], "frame": "oriented", "exif_orientation": 1, "mode": "RGB"}
    return {
        "row_id": f"{n:08d}",
        "status": "ok",
        "source": {"file": "data/photos-00000.parquet", "row_group": n // 100, "row": n % 100},
        "image": {**shape, "n_frames": 1, "sha256": dice.randbytes(32).hex()},
        "things": answer("objects", [clip_box(box) for box in boxes]),
        "spots": answer("points", [clip_point(point) for point in points]),
        "caption": answer("text", " ".join(words)),
        "job_id": "0123456789abcdef",
    }


# The stages: each call is one measurement and gives images per second.


def reading(path: Path) -> Stage:
    def measure() -> float:
        start = time.perf_counter()
        count = sum(row.image is not None for row in ParquetSource([str(path)], image="image", id="name").rows())
        return count / (time.perf_counter() - start)

    return measure


def on_threads(threads: int, images: list[bytes], work: Callable[[bytes], object]) -> Stage:
    def measure() -> float:
        with ThreadPoolExecutor(threads) as pool:
            start = time.perf_counter()
            for _ in pool.map(work, images):
                pass
            return len(images) / (time.perf_counter() - start)

    return measure


def decoding(data: bytes) -> PIL.Image.Image:
    return decode(data, DecodePolicy())[0]


def cutting(data: bytes) -> None:
    """Into memory of the thread's own that is there already, as the engine's ring is."""
    vision, picture = VisionConfig(), decoding(data)
    tiling = select_tiling(picture.height, picture.width, vision)
    if not hasattr(_here, "crops"):
        _here.crops = np.zeros((vision.max_crops + 1, vision.crop_size, vision.crop_size, 3), np.uint8)
    cut_crops(picture, tiling, vision, _here.crops[: crop_count(tiling)])


def writing(folder: Path, rows: list[dict[str, object]]) -> Stage:
    tasks = [TaskColumn("things", "objects"), TaskColumn("spots", "points"), TaskColumn("caption", "text")]
    writer = PartWriter(folder, result_schema(tasks, []))

    def measure() -> float:
        start = time.perf_counter()
        writer.write(0, rows)
        return len(rows) / (time.perf_counter() - start)

    return measure


def whole_job(path: Path, folder: Path) -> Stage:
    settings = {
        "version": 1,
        "input": {"parquet": [str(path)], "id": "name"},
        "model": {"path": "photon://null"},
        "tasks": TASKS,
        "output": {"dir": str(folder)},
    }
    manifest = Manifest.model_validate(settings)

    def measure() -> float:
        summary = run(manifest, fresh=True)
        assert summary.failed == 0
        return summary.rows / summary.seconds

    return measure


def stages(folder: Path, count: int) -> Iterator[tuple[str, Stage]]:
    images, path = photos(), folder / "photos.parquet"
    write_rows(path, images, count)
    every = [images[n % len(images)] for n in range(count)]
    yield "reader", reading(path)
    for threads in THREADS:
        yield f"decode, {_threads(threads)}", on_threads(threads, every, decoding)
    for threads in THREADS:
        yield f"decode + crops, {_threads(threads)}", on_threads(threads, every, cutting)
    yield "writer", writing(folder / "parts", result_rows(CHUNK_ROWS))
    yield "whole job, photon://null", whole_job(path, folder / "job")


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


# What is told.


def ratios(medians: dict[str, float]) -> dict[str, float]:
    one, most = _threads(1), _threads(THREADS[-1])
    decoded, cut = medians[f"decode, {most}"], medians[f"decode + crops, {most}"]
    return {
        "reader / decode": medians["reader"] / decoded,
        "reader / decode + crops": medians["reader"] / cut,
        "decode / decode + crops": decoded / cut,
        f"decode, {most} / {one}": decoded / medians[f"decode, {one}"],
        f"decode + crops, {most} / {one}": cut / medians[f"decode + crops, {one}"],
        "writer / whole job": medians["writer"] / medians["whole job, photon://null"],
        "decode / whole job": decoded / medians["whole job, photon://null"],
    }


def machine() -> dict[str, object]:
    info = Path("/proc/cpuinfo").read_text()
    processor = next((line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    python = f"{platform.python_version()} ({', '.join(platform.python_build())})"  # builds differ by a fifth or more
    return {"processor": processor, "cores": CORES, "memory_gb": round(memory, 1), "python": python}


def busy_elsewhere() -> float:
    """Seconds that the machine's cores have spent on anything but this process."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()


def commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return f"{git('rev-parse', '--short', 'HEAD') or 'unknown'}{', not clean' if git('status', '--porcelain') else ''}"


def measured(count: int, repeats: int) -> dict[str, list[float]]:
    """Each stage ``repeats`` times, in turns, so that a busy minute of the machine does not fall on one of them."""
    with tempfile.TemporaryDirectory() as folder:
        todo = dict(stages(Path(folder), count))
        rates: dict[str, list[float]] = {name: [] for name in todo}
        for stage in todo.values():
            stage()  # once for nothing: imports, caches
        for _ in range(repeats):
            for name, stage in todo.items():
                rates[name].append(stage())
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=200, metavar="N", help="images to read, decode and cut (200)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="measurements of each stage (5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.rows < 1 or arguments.repeats < 1:
        parser.error("--rows and --repeats take a number of at least 1")
    about: dict[str, Any] = {
        "machine": machine(),
        "commit": commit(),
        "rows": arguments.rows,
        "repeats": arguments.repeats,
    }
    start, before = time.perf_counter(), busy_elsewhere()
    rates = measured(arguments.rows, arguments.repeats)
    about["cores_busy_elsewhere"] = round((busy_elsewhere() - before) / (time.perf_counter() - start), 2)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    if arguments.json:
        print(json.dumps({**about, "images_per_second": rates, "median": medians, "ratios": ratios(medians)}))
        return
    print_table(about, rates, medians)


def print_table(about: dict[str, Any], rates: dict[str, list[float]], medians: dict[str, float]) -> None:
    here = about["machine"]
    cores = f"{here['cores']} {'core' if here['cores'] == 1 else 'cores'}"
    other = about["cores_busy_elsewhere"]
    print(f"machine  {here['processor']}, {cores}, {here['memory_gb']} GB; {other} cores busy with other work")
    print(f"commit   {about['commit']}")
    print(f"data     {about['rows']} JPEGs of {SIZE[0]}x{SIZE[1]}, one detect, point and caption task\n")
    print(f"{'images/s, runs: ' + str(about['repeats']):<26}{'min':>10}{'median':>10}{'max':>10}")
    for name, values in rates.items():
        print(f"{name:<26}{min(values):>10.1f}{medians[name]:>10.1f}{max(values):>10.1f}")
    print("\nratios of the medians, on all threads where nothing is said")
    for name, value in ratios(medians).items():
        print(f"{name:<36}{value:>8.2f}")


if __name__ == "__main__":
    main()
