"""Sections 4 and 5 for images: detect with three objects, by batch, depth, graphs, crops and questions to a picture."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from itertools import product

import numpy as np
import PIL.Image
import torch

from benchmarks.gpu import ceilings, model
from benchmarks.gpu.engines import cut_beforehand, opened
from benchmarks.gpu.rows import OUT_OF_TIME, Day, Figure, Row, Unavailable, skipped
from benchmarks.gpu.traffic import Mix, figures, steady
from photon.engine.engine import Engine
from photon.models.load import LoadedModel

OBJECTS, TOKENS = 3, 110
DECODED = (640, 480)
"""Nine crops."""
BATCHES, SMOKE_BATCHES = (64, 32, 8, 1), (2,)
SECONDS, SMOKE_SECONDS = 1.5, 0.1
_PICTURES_AHEAD = 24


def section(day: Day) -> Iterator[Row]:
    """The largest batches first: what is left when time runs out matters least."""
    loaded = model.random_model(model.config(day.smoke), torch.device(day.device), dtype(day))
    batches = SMOKE_BATCHES if day.smoke else BATCHES
    with model.ending_after(objects=OBJECTS, tokens=TOKENS):
        for batch, graphs, depth in product(batches, (True, False), (2, 1)):
            yield from _way(day, loaded, batch, graphs, depth, decoding=batch == batches[0] and depth == 2)


def _way(day: Day, loaded: LoadedModel, batch: int, graphs: bool, depth: int, *, decoding: bool) -> Iterator[Row]:
    """The rows of one engine; a frame of its own, so that the next one does not find this one's memory taken."""
    way = f"detect, batch {batch}, depth {depth}, graphs {'on' if graphs else 'off'}"
    whats = [(f"{way}, {crops} crops, K {k}", crops, k) for crops, k in product((1, 9), (1, 5))]
    if day.out_of_time:
        yield from (Row(what, "not run", OUT_OF_TIME) for what, _, _ in whats)
        return
    try:
        with opened(day, loaded, graphs=graphs, depth=depth, max_batch=batch, stop_repetition=False) as engine:
            for what, crops, k in whats:
                yield day.attempt(what, partial(measure, day, engine, batch, crops, k))
            if decoding and not day.smoke:
                what = f"{way}, {DECODED[0]}x{DECODED[1]} JPEGs decoded in the run, K 1"
                yield day.attempt(what, partial(_decoding, day, engine, batch))
    except Unavailable as error:
        yield from (skipped(what, str(error)) for what, _, _ in whats)
    except Exception as error:  # making the engine; what goes wrong in a run is its row's
        yield from (Row(what, "failed", f"{type(error).__name__}: {error}"[:600]) for what, _, _ in whats)


def dtype(day: Day) -> torch.dtype:
    return torch.bfloat16 if day.cuda else torch.float32


def measure(day: Day, engine: Engine, batch: int, crops: int, questions: int) -> dict[str, Figure]:
    """A stretch of the mix, with the share of the floor that it reaches."""
    cut_beforehand(engine, crops)
    mix = Mix("detect", questions)
    inside = batch + _PICTURES_AHEAD * questions if not day.smoke else batch + questions
    seconds = SMOKE_SECONDS if day.smoke else SECONDS
    told = figures(
        steady(engine, mix.requests(), inside=inside, warm_up=2 if day.smoke else max(batch, 4), seconds=seconds)
    )
    told |= graph_use(engine)
    floors = ceilings.of_card(day)
    if floors is not None:
        floor = floors.detect(crops=crops, rows=batch, questions=questions, objects=OBJECTS)
        told["floor"] = Figure(1 / floor, "1/s")
        told["share of floor"] = Figure(100 * told["requests"].value * floor, "%")
    return told


def _decoding(day: Day, engine: Engine, batch: int) -> dict[str, Figure]:
    """The whole way from encoded bytes, on as many threads as a job has."""
    del engine._prepare  # what ``cut_beforehand`` has put before the engine's own
    noise, file = np.random.default_rng(0), BytesIO()
    PIL.Image.fromarray(noise.integers(0, 256, (DECODED[1], DECODED[0], 3), np.uint8)).save(file, "JPEG", quality=90)
    mix = Mix("detect", source=file.getvalue())
    inside = batch + _PICTURES_AHEAD
    return figures(steady(engine, mix.requests(), inside=inside, warm_up=batch, seconds=SECONDS))


def graph_use(engine: Engine) -> dict[str, Figure]:
    """How much of a run with graphs ran without one; nothing for an engine that has none."""
    told = engine.statistics.as_dict()
    replays, fallbacks = told.get("graph_replays", 0), told.get("graph_fallbacks", {})
    assert isinstance(replays, int)
    assert isinstance(fallbacks, dict)
    eager = sum(fallbacks.values())
    return {"without a graph": Figure(100 * eager / (replays + eager), "% of ops")} if replays + eager else {}
