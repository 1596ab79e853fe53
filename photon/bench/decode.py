"""``photon-batch bench decode``: the single-stream decoder against a plain loop over the same model, in one run.

Texts are made to reach their full length, so that every way takes as many steps. Encoding the picture and the prompt
is no part of a rate.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from photon.bench.bandwidth import copy_bandwidth
from photon.bench.plain import PlainLoop
from photon.bench.report import Report, Row
from photon.core import Image, Request
from photon.engine.fast_decoder import MODES, Decoded, FastDecoder, Mode, unavailable
from photon.engine.opening import Opening
from photon.errors import UsageError
from photon.models.load import LoadedModel
from photon.models.moondream import Moondream
from photon.skills.grammar import NOBODY, TextGrammar

QUESTION = "What is in this picture?"


@dataclass(frozen=True, slots=True)
class Workload:
    """One text of ``tokens``, about ``image`` if there is one, decoded ``repeats`` times each way. ``sampling``:
    settings of the request."""

    tokens: int = 128
    image: Path | None = None
    repeats: int = 3
    sampling: dict[str, Any] = field(default_factory=dict)

    def request(self) -> Request:
        """Raises ``UsageError`` for settings out of range."""
        if self.tokens < 2 or self.repeats < 1:
            raise UsageError(f"needs at least 2 tokens and 1 repeat, not {self.tokens} and {self.repeats}")
        image = None if self.image is None else Image(self.image)
        try:
            return Request("bench", image, "query", QUESTION, max_tokens=self.tokens, **self.sampling)
        except ValueError as error:
            raise UsageError(str(error)) from None


@dataclass(slots=True, eq=False)
class _Way:
    """A row to be measured, or one that says why it cannot be."""

    row: Row
    decode: Callable[[Opening], Decoded] | None = None
    runs: list[Decoded] = field(default_factory=list)


def bench_decode(
    loaded: LoadedModel,
    work: Workload,
    *,
    modes: Sequence[str] = MODES,
    check_every: Sequence[int] = (1, 8, 32),
    capacity: int | None = None,
) -> Report:
    """Each of ``modes`` with each ``check_every``; ``capacity`` as in ``FastDecoder``. Raises ``UsageError`` for a mode
    that there is not and a text that does not fit; a mode that does not work here is a row that says so."""
    wrong = [*(mode for mode in modes if mode not in MODES), *(k for k in check_every if k < 1)]
    if wrong:
        raise UsageError(f"modes are {', '.join(MODES)}, and check_every is at least 1; {wrong[0]!r} is neither")
    load, model = os.getloadavg()[0], loaded.model
    eager = FastDecoder(loaded, capacity=capacity)
    opening = eager.open(work.request())
    size = eager.bucket(opening.positions, work.tokens)
    ways = [_Way(Row("plain"), PlainLoop(model, size).decode)]
    for mode in (mode for mode in MODES if mode in modes):
        ways += _ways(loaded, mode, check_every, capacity, _endless(opening, work.tokens))
    for _ in range(work.repeats):
        for way in ways:  # in turn, so that what else the machine does falls on all
            if way.decode is not None:
                way.runs.append(way.decode(_endless(opening, work.tokens)))
    weights, bandwidth = weight_bytes(model), copy_bandwidth(model.device)
    about = {
        **_conditions(model, load),
        "model": loaded.fingerprint,
        "sampling": ", ".join(f"{name} {value}" for name, value in work.sampling.items()) or "temperature 0",
        "prompt_positions": opening.positions,
        "tokens": work.tokens,
        "repeats": work.repeats,
        "capacity": size,
        "cache_bytes": cache_bytes(model, size),
        "weight_bytes": weights,
        "copy_gb_per_s": bandwidth / 1e9,
        "floor_ms_per_step": 1e3 * weights / bandwidth,
        "first_token_ms": 1e3 * median(run.first_seconds for run in ways[0].runs),
    }
    return Report(about, [_figures(way, ways[0], weights, bandwidth) for way in ways])


def _ways(
    loaded: LoadedModel, mode: Mode, check_every: Sequence[int], capacity: int | None, warm_up: Opening
) -> list[_Way]:
    if (why := unavailable(mode, loaded.model.device)) is not None:
        return [_Way(Row(mode, status="skipped", why=why))]
    decoder = FastDecoder(loaded, mode=mode, capacity=capacity)
    try:
        decoder.decode(warm_up)
    except UsageError as error:
        return [_Way(Row(mode, status="failed", why=str(error)))]
    return [_Way(Row(mode, k), partial(decoder.decode, check_every=k)) for k in check_every]


def _endless(opening: Opening, tokens: int) -> Opening:
    """The same beginning under a grammar that only the count ends."""
    grammar = opening.script.grammar
    assert isinstance(grammar, TextGrammar)
    return replace(opening, script=replace(opening.script, grammar=TextGrammar(NOBODY, tokens, grammar.bans)))


def _figures(way: _Way, plain: _Way, weights: int, bandwidth: float) -> Row:
    if not way.runs:
        return way.row
    steps = way.runs[0].steps
    seconds = median(run.decode_seconds for run in way.runs) / steps
    return replace(
        way.row,
        tokens_per_s=1 / seconds,
        ms_per_step=1e3 * seconds,
        speedup=median(run.decode_seconds for run in plain.runs) / steps / seconds,
        same_tokens=all(run.tokens == plain.runs[0].tokens for run in way.runs),
        looks=way.runs[0].looks,
        surplus_ms=1e3 * seconds * ((way.row.check_every or 1) - 1) / 2,
        gb_per_s=weights / seconds / 1e9,
        of_bandwidth=weights / seconds / bandwidth,
    )


def numbers(text: str) -> list[int]:
    """ "1,8,32" as a list. Raises ``UsageError``."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"numbers with commas are wanted, such as 1,8,32, not {text!r}") from None


def weight_bytes(model: Moondream) -> int:
    """What a step reads of the text model: all but the table of embeddings, of which it reads one row."""
    text = model.text
    return sum(p.numel() * p.dtype.itemsize for p in text.parameters()) - text.wte[1:].numel() * model.dtype.itemsize


def cache_bytes(model: Moondream, capacity: int) -> int:
    text = model.config.text
    return 2 * text.n_layers * text.kv_heads * text.head_dim * capacity * model.dtype.itemsize


def _conditions(model: Moondream, load_before: float) -> dict[str, Any]:
    return {
        "device": str(model.device),
        "dtype": str(model.dtype).removeprefix("torch."),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
