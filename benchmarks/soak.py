"""Hours of the engine on worker threads, to see whether memory stays flat.

    python benchmarks/soak.py [--minutes 30] [--every 60] [--seed 0] [--json]

A model of a few thousand weights, so that what turns over is requests, pictures, pages and rows, not arithmetic; broken
pictures, prompts that do not fit, requests that are given up, and one run in eight left early. Prints the resident set,
Python's objects and threads as it goes, and at the end by how much the second half of the readings rises.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import threading
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from photon.device.threads import ThreadDevice
from tests.engine import micro
from tests.engine.mixture import Mixture

RUN = 400


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmRSS")


def take_reading(minutes: float, done: int) -> dict[str, float]:
    return {
        "minutes": round(minutes, 1),
        "requests": done,
        "mb": round(resident_mb(), 1),
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
    }


def slope(readings: list[dict[str, float]], key: str) -> float:
    """Least squares, per hour."""
    times = torch.tensor([reading["minutes"] / 60 for reading in readings], dtype=torch.float64)
    values = torch.tensor([reading[key] for reading in readings], dtype=torch.float64)
    times = times - times.mean()
    return float((times * (values - values.mean())).sum() / (times**2).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=60, help="seconds between readings")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    engine = micro.engine(ThreadDevice(), max_batch=8)
    mixture = Mixture(engine, options.seed)
    began, read, done = time.monotonic(), 0.0, 0
    readings: list[dict[str, float]] = []
    while (passed := time.monotonic() - began) < options.minutes * 60 or len(readings) < 4:
        done += len(mixture.run(RUN, leave_after=dice.randrange(1, RUN) if dice.random() < 1 / 8 else None))
        if passed >= read:
            read += options.every
            gc.collect()
            readings.append(reading := take_reading(passed / 60, done))
            if not options.json:
                print("  ".join(f"{key} {value:,}" for key, value in reading.items()), flush=True)
    engine.close()
    half = readings[len(readings) // 2 :]
    figures = {
        "requests": done,
        "outcomes": {code or "answered": count for code, count in mixture.codes.most_common()},
        "mb_per_hour": round(slope(half, "mb"), 2),
        "objects_per_hour": round(slope(half, "objects"), 1),
    }
    if options.json:
        print(json.dumps({"readings": readings, **figures}))
    else:
        print("\n".join(f"{key}: {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
