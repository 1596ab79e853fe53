"""What one planted synchronisation costs: the loop at depth 2 as it is, with the host waiting for the device at the end
of every finalize, and at depth 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import torch

from benchmarks.gpu import detect, model, text
from benchmarks.gpu.engines import opened, synchronising
from benchmarks.gpu.rows import Day, Figure, Row
from photon.engine.engine import Engine
from photon.models.load import LoadedModel

_WAYS = (("depth 2", 2, False), ("depth 2, a synchronisation in finalize", 2, True), ("depth 1", 1, False))
_Measure = Callable[[Engine], dict[str, Figure]]


def section(day: Day) -> Iterator[Row]:
    """Without graphs, since a captured step has no place to plant anything in."""
    loaded = model.random_model(model.config(day.smoke), torch.device(day.device), detect.dtype(day))
    batch, tokens = (2, 8) if day.smoke else (32, detect.TOKENS)
    mixes: tuple[tuple[str, _Measure], ...] = (
        (f"text, {batch} streams", lambda engine: text.measure(day, engine, batch, tokens)),
        (f"detect, batch {batch}, 1 crop", lambda engine: detect.measure(day, engine, batch, 1, 1)),
    )
    with model.ending_after(objects=detect.OBJECTS, tokens=tokens):
        for name, measure in mixes:
            undisturbed: float | None = None
            for way, depth, planted in _WAYS:
                row = day.attempt(f"{name}, {way}", partial(_run, day, loaded, batch, depth, planted, measure))
                if row.figures:
                    requests = row.figures["requests"].value
                    undisturbed = undisturbed or requests
                    row.figures["against the first"] = Figure(100 * (requests / undisturbed - 1), "%")
                yield row


def _run(day: Day, loaded: LoadedModel, batch: int, depth: int, planted: bool, measure: _Measure) -> dict[str, Figure]:
    plant = synchronising() if planted else nullcontext()
    with opened(day, loaded, graphs=False, depth=depth, max_batch=batch, stop_repetition=False) as engine, plant:
        return measure(engine)
