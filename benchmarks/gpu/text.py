"""Sections 4 and 5 for text: answers of 110 tokens about pictures of one crop, by streams, depth and graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import torch

from benchmarks.gpu import ceilings, model
from benchmarks.gpu.detect import OBJECTS, SECONDS, SMOKE_SECONDS, TOKENS, dtype, graph_use
from benchmarks.gpu.engines import cut_beforehand, opened
from benchmarks.gpu.floors import PROMPT
from benchmarks.gpu.rows import Day, Figure, Row
from benchmarks.gpu.traffic import Mix, figures, steady
from photon.engine.engine import Engine
from photon.models.load import LoadedModel

STREAMS, SMOKE_STREAMS = (32, 8, 1), (2,)
_SMOKE_TOKENS = 8


def section(day: Day) -> Iterator[Row]:
    loaded = model.random_model(model.config(day.smoke), torch.device(day.device), dtype(day))
    tokens = _SMOKE_TOKENS if day.smoke else TOKENS
    with model.ending_after(objects=OBJECTS, tokens=tokens):
        for streams, graphs, depth in product(SMOKE_STREAMS if day.smoke else STREAMS, (True, False), (2, 1)):
            what = f"text of {tokens} tokens, {streams} streams, depth {depth}, graphs {'on' if graphs else 'off'}"
            yield day.attempt(what, partial(_run, day, loaded, streams, tokens, graphs, depth))


def _run(day: Day, loaded: LoadedModel, streams: int, tokens: int, graphs: bool, depth: int) -> dict[str, Figure]:
    with opened(day, loaded, graphs=graphs, depth=depth, max_batch=streams, stop_repetition=False) as engine:
        return measure(day, engine, streams, tokens)


def measure(day: Day, engine: Engine, streams: int, tokens: int) -> dict[str, Figure]:
    """A stretch of texts, with the share of its decode floor that a step reaches."""
    cut_beforehand(engine, 1)
    seconds = SMOKE_SECONDS if day.smoke else SECONDS
    told = figures(steady(engine, Mix("text").requests(), inside=2 * streams, warm_up=streams, seconds=seconds))
    told |= graph_use(engine)
    floors = ceilings.of_card(day)
    if floors is not None and "decode step" in told:
        floor = 1e3 * floors.decode(streams, floors.config.prefix_len + PROMPT + tokens // 2)
        told["floor of a step"] = Figure(floor, "ms")
        told["share of floor"] = Figure(100 * floor / told["decode step"].value, "%")
    return told
