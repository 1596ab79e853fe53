"""Engines for the day: over a model in memory, with graphs where this checkout knows them, on pictures that are cut
beforehand, and with a synchronisation planted."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.gpu.rows import Day, Unavailable
from photon.core import Image, ImageInfo
from photon.engine.engine import Engine
from photon.engine.loop import Loop
from photon.models import load
from photon.models.load import LoadedModel

_STALL_SECONDS = 30.0
"""A hang is to cost its row and not its section."""


@contextmanager
def opened(
    day: Day, model: str | LoadedModel, *, graphs: bool, device: str | None = None, **options: Any
) -> Iterator[Engine]:
    """An engine, closed and its memory given back at the end. Raises ``Unavailable`` where it cannot have graphs."""
    choices: dict[str, Any] = {"device": device or day.device, "stall_timeout": _STALL_SECONDS, **options}
    if "graphs" in inspect.signature(Engine.load).parameters:
        choices["graphs"] = graphs
    elif graphs:
        raise Unavailable("this checkout's engine has no graphs")
    if graphs and choices["device"] != "cuda":
        raise Unavailable("no CUDA device")
    _give_back(day)  # the engine before this one, if its caller held on to it until now
    with ExitStack() as stack:
        if isinstance(model, LoadedModel):
            stack.enter_context(_in_place_of_files(model))
        engine = Engine.load("photon://tiny" if isinstance(model, LoadedModel) else model, **choices)
    try:
        yield engine
    finally:
        engine.close()
        del engine
        _give_back(day)


def _give_back(day: Day) -> None:
    gc.collect()
    if day.cuda:
        torch.cuda.empty_cache()


@contextmanager
def _in_place_of_files(model: LoadedModel) -> Iterator[None]:
    """Whoever loads a model gets this one: writing two billion weights to a disk and reading them back for each engine
    would take longer than measuring it."""
    real = load.load_model
    holders = [m for name, m in sys.modules.items() if name.startswith("photon.") and vars(m).get("load_model") is real]
    with ExitStack() as stack:
        for holder in holders:
            stack.enter_context(patch.object(holder, "load_model", lambda *_, **__: model))
        yield


def cut_beforehand(engine: Engine, crops: int) -> None:
    """Every picture arrives as ``crops`` crops of noise that are copied, not decoded and cut: the figures are to be the
    engine's, and a card takes more pictures than a few cores can cut."""
    side = engine._vision.crop_size
    pixels = np.random.default_rng(0).integers(0, 256, (crops, side, side, 3), np.uint8)
    tiling = (1, 1) if crops == 1 else _tiling(crops - 1)

    def prepare(image: Image) -> tuple[ImageInfo, Any]:
        entry = engine._ring.acquire(crops, tiling)
        entry.pixels.numpy()[:] = pixels
        return ImageInfo(side, side), entry

    engine._prepare = prepare  # type: ignore[method-assign]


def _tiling(tiles: int) -> tuple[int, int]:
    rows = next(n for n in range(int(tiles**0.5), 0, -1) if tiles % n == 0)
    return rows, tiles // rows


@contextmanager
def synchronising() -> Iterator[None]:
    """The host waits for the device at the end of every finalize, as a synchronous copy in the mask upload makes it."""
    real = Loop.finalize

    def finalize(self: Loop, step: Any) -> None:
        real(self, step)
        self._device.drain()

    with patch.object(Loop, "finalize", finalize):
        yield
