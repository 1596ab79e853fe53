"""What the engine's own Python costs: one whole tick of 64 mixed decode rows on a device that takes no time.

    python benchmarks/tick.py [--rows 64] [--ticks 2000] [--json]

Operations are queued and never run; what a step "sampled" is written into its landing buffer beforehand, so that no row
ends. Prints microseconds per tick (median, p99) and the share of launch, commit and finalize.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from photon.core import Request
from photon.engine.engine import Engine
from photon.engine.intake import Arrival, Prepared
from photon.engine.loop import Loop
from photon.engine.scheduler import Scheduler
from photon.skills.registry import script_for
from tests.engine import micro
from tests.engine.instant import InstantDevice


def full_loop(rows: int) -> Loop:
    """A loop whose table is full of running rows: a third each of detect, point and text, several to an image."""
    engine: Engine = micro.engine(InstantDevice(runs=False), max_batch=rows, pages=100_000)
    context = engine._context
    scheduler = Scheduler(engine._sizes, engine._pages, engine._table, engine._admission.prefix_len, lambda _: True)
    loop = Loop(
        engine._device, engine._forward, engine._slots, scheduler, engine._ring, engine._admission, engine._depth
    )
    arrivals = []
    for picture in range(0, rows, 4):
        image = micro.image(picture)
        prepared = Prepared(image, content=engine._ring.acquire(1, (1, 1)), ready=True)
        for k in range(picture, min(picture + 4, rows)):
            skill: Any = ("detect", "point", "query")[k % 3]
            settings = {"max_tokens": 10**6} if skill == "query" else {"max_objects": 10**6}
            request = Request(k, image, skill, "thing", **settings)
            arrivals.append(Arrival(request, script_for(request, context), prepared, 0.0, None))
    loop.admit(arrivals)
    for slot in engine._slots._all:
        slot.landed[:] = torch.tensor([7.0, 3.0, 4.0, 0.25, 0.5, 0.5])
    return loop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--ticks", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    micro.CONFIG["text"]["max_context"] = options.ticks + 400
    loop = full_loop(options.rows)
    parts: dict[str, list[float]] = {"launch": [], "commit": [], "finalize": []}
    for name, spent in parts.items():
        method = getattr(loop, name)

        def wrapped(*arguments: Any, _method: Any = method, _spent: list[float] = spent) -> Any:
            start = time.perf_counter()
            result = _method(*arguments)
            _spent.append(time.perf_counter() - start)
            return result

        setattr(loop, name, wrapped)
    inflight = None
    for _ in range(50):
        inflight = loop.tick(inflight)
    assert inflight is not None
    assert len(inflight.sequences) == options.rows, len(inflight.sequences)
    for spent in parts.values():
        spent.clear()
    gc.collect()
    gc.freeze()
    ticks = []
    for _ in range(options.ticks):
        start = time.perf_counter()
        inflight = loop.tick(inflight)
        ticks.append(time.perf_counter() - start)
    assert inflight is not None
    assert len(inflight.sequences) == options.rows

    def us(values: list[float], share: float) -> float:
        return round(sorted(values)[int(len(values) * share)] * 1e6, 1)

    figures = {"rows": options.rows, "median_us": us(ticks, 0.5), "p99_us": us(ticks, 0.99)}
    figures |= {f"{name}_us": us(spent, 0.5) for name, spent in parts.items()}
    print(json.dumps(figures) if options.json else "\n".join(f"{k:12} {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
