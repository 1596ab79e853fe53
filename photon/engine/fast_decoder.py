"""One text at a time, as fast as one stream goes: the host queues steps and looks at the tokens only now and then.

The technique is in ``static_step``. Here: how its step is run (eager, as a CUDA graph, compiled), how large a cache a
request needs, and when a text has ended. For many requests at a time use ``photon.Engine``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args

import torch

from photon.core import FinishReason, Request, Result, Timings
from photon.device.choose import DeviceName, open_device
from photon.engine.opening import Choice, Opening, open_text
from photon.engine.static_step import StaticStep
from photon.errors import EngineError, UsageError
from photon.images.decode import DecodePolicy
from photon.models.load import LoadedModel, load_model
from photon.skills.grammar import NOBODY, Grammar

Mode = Literal["eager", "graph", "compile"]
MODES: tuple[Mode, ...] = ("eager", "graph", "compile")
SMALLEST_BUCKET = 256
_RECOMPILES = 256
"""One step compiles anew for each bucket and choice, and torch gives up on a function after 8 by default."""

_Key = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """``tokens``: the answer's, end token left out. ``steps`` were queued after the first token, of which ``surplus``
    ran past the end; the host waited for tokens ``looks`` times. Seconds: up to the first token, and after it."""

    tokens: list[int]
    reason: FinishReason
    steps: int
    surplus: int
    looks: int
    first_seconds: float
    decode_seconds: float


class FastDecoder:
    """Answers captions and plain queries, one at a time. Make one with ``FastDecoder.load``."""

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        mode: Mode = "eager",
        check_every: int = 8,
        capacity: int | None = None,
        stop_repetition: bool = True,
        policy: DecodePolicy | None = None,
    ) -> None:
        """``check_every``: steps between two looks at the tokens. ``capacity``: the most positions (picture, prompt and
        answer) of a request, by default all that the model knows; memory is taken by bucket, when one is first needed.
        """
        if mode not in MODES:
            raise UsageError(f"mode must be {', '.join(MODES[:-1])} or {MODES[-1]}, not {mode!r}")
        if check_every < 1:
            raise UsageError(f"check_every must be at least 1, not {check_every}")
        most = loaded.model.config.text.max_context
        if capacity is not None and not 1 <= capacity <= most:
            raise UsageError(f"capacity must be from 1 to the model's {most} positions, not {capacity}")
        why = unavailable(mode, loaded.model.device)
        if why is not None:
            raise UsageError(f"mode {mode} {why}")
        self.loaded, self.mode, self.check_every = loaded, mode, check_every
        self._buckets = buckets(capacity or most)
        self._stop_repetition, self._policy = stop_repetition, policy or DecodePolicy()
        self._steps: dict[_Key, StaticStep] = {}
        self._runs: dict[tuple[_Key, Choice], Callable[[], None]] = {}

    @classmethod
    def load(
        cls,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        revision: str | None = None,
        tokenizer: str | None = None,
        tokenizer_revision: str | None = None,
        **options: Any,
    ) -> FastDecoder:
        """Load ``model`` as ``photon.Engine.load`` does; ``options`` are those of the class."""
        where = {"revision": revision, "tokenizer": tokenizer, "tokenizer_revision": tokenizer_revision}
        return cls(load_on(model, device, dtype, **where), **options)

    def answer(self, request: Request) -> Result:
        """The batch engine's answer to the same request. Raises ``PhotonError`` for what cannot be answered."""
        submitted = time.monotonic()
        opening = self.open(request)
        prepared = time.monotonic()
        decoded = self.decode(opening)
        return Result(
            id=request.id,
            finish_reason=decoded.reason,
            token_ids=decoded.tokens,
            n_tokens=len(decoded.tokens),
            image=opening.info,
            timings=Timings(submitted, prepared, prepared, time.monotonic()),
            **opening.script.parse(),
        )

    @torch.inference_mode()
    def open(self, request: Request) -> Opening:
        """Decode and encode the request's picture, embed its prompt."""
        return open_text(self.loaded, request, self._policy, stop_repetition=self._stop_repetition)

    @torch.inference_mode()
    def decode(self, opening: Opening, check_every: int | None = None) -> Decoded:
        """Decode until the opening's grammar has had enough; surplus tokens are dropped. An opening serves once."""
        grammar, start, every = opening.script.grammar, opening.positions, check_every or self.check_every
        step, run = self._ready(self.bucket(start, grammar.max_samples), bans_of(grammar), opening.choice)
        begun = time.perf_counter()
        step.begin(opening)
        reason, _ = advance(grammar, step.read(start - 1, 1))
        first = time.perf_counter()
        done, looks, surplus = 1, 1, 0
        while reason is None:
            count = min(every, grammar.max_samples - done)
            for _ in range(count):
                run()
            reason, surplus = advance(grammar, step.read(start - 1 + done, count))
            done, looks = done + count, looks + 1
        ended = time.perf_counter()
        return Decoded(list(grammar.tokens), reason, done - 1, surplus, looks, first - begun, ended - first)

    def bucket(self, prompt: int, new: int) -> int:
        """The cache that holds so many positions. Raises ``UsageError``."""
        for capacity in self._buckets:
            if prompt + new <= capacity:
                return capacity
        raise UsageError(
            f"prompt and picture take {prompt} positions and the answer up to {new}: {prompt + new} are more than the "
            f"capacity of {self._buckets[-1]}; lower max_tokens or shorten the prompt"
        )

    def _ready(self, capacity: int, bans: tuple[int, ...], choice: Choice) -> tuple[StaticStep, Callable[[], None]]:
        """The bucket's step and a way to run it; made, and captured or compiled, when first needed."""
        key = (capacity, bans)
        if key not in self._steps:
            self._steps[key] = StaticStep(self.loaded.model, capacity, bans)
        step = self._steps[key]
        if (key, choice) not in self._runs:
            step.position.zero_()  # what warming up writes, ``begin`` takes away
            self._runs[key, choice] = self._prepare(step, choice)
        return step, self._runs[key, choice]

    def _prepare(self, step: StaticStep, choice: Choice) -> Callable[[], None]:
        if self.mode == "eager":
            return partial(step, choice)
        if self.mode == "graph":
            from photon.device.graphs import capture

            return capture(partial(step, choice))
        return _compiled(step, choice)


def _compiled(step: StaticStep, choice: Choice) -> Callable[[], None]:
    """Raises ``UsageError`` when it cannot be compiled here."""
    import torch._dynamo

    how = "reduce-overhead" if step.position.is_cuda else "default"
    run = partial(torch.compile(step, fullgraph=True, dynamic=False, mode=how), choice)
    try:
        with torch._dynamo.config.patch(recompile_limit=_RECOMPILES):
            run()
    except Exception as error:
        what = str(error).strip().partition("\n")[0]
        raise UsageError(
            f"mode compile: torch.compile failed ({type(error).__name__}: {what}); on a CPU it needs a C++ compiler "
            "such as g++, and float32 where bfloat16 is slow; on CUDA it needs Triton; mode eager needs none of them"
        ) from error
    return run


def advance(grammar: Grammar, tokens: list[int]) -> tuple[FinishReason | None, int]:
    """Tell the grammar until it is done: the reason, and how many tokens were left over."""
    for at, token in enumerate(tokens, 1):
        reason = grammar.advance((token, 0, 0, 0.0, 1.0, 1.0))
        if reason is not None:
            return reason, len(tokens) - at
    return None, 0


def bans_of(grammar: Grammar) -> tuple[int, ...]:
    """From the second token on. The first has none: a step is for the others."""
    first, later = grammar.demand(1), grammar.demand(2)
    if first.ban != NOBODY:
        raise EngineError("the single-stream decoder bans nothing at a text's first token")
    return tuple({later.ban, later.ban_too} - {NOBODY})


def buckets(capacity: int) -> list[int]:
    """Sizes of caches: 256, 512, 1024 ... up to ``capacity``, which is the last."""
    sizes = []
    size = SMALLEST_BUCKET
    while size < capacity:
        sizes.append(size)
        size *= 2
    return [*sizes, capacity]


def unavailable(mode: Mode, device: torch.device) -> str | None:
    """Why a mode cannot run on a device."""
    if mode == "graph" and device.type != "cuda":
        return f"needs a CUDA device; the model is on {device.type}"
    return None


def load_on(model: str, device: str, dtype: str, **where: str | None) -> LoadedModel:
    """``device`` auto, cpu or cuda; ``dtype`` auto, which is float32 on a CPU and bfloat16 on CUDA, or either.
    ``where``: see ``load_model``. Raises ``UsageError``."""
    if device not in get_args(DeviceName):
        raise UsageError(f"device must be auto, cpu or cuda, not {device!r}")
    if dtype not in ("auto", "float32", "bfloat16"):
        raise UsageError(f"dtype must be auto, float32 or bfloat16, not {dtype!r}")
    opened = open_device(cast(DeviceName, device))
    on = opened.torch_device
    opened.close()
    if dtype == "auto":
        dtype = "float32" if on.type == "cpu" else "bfloat16"
    return load_model(model, device=on, dtype=torch.float32 if dtype == "float32" else torch.bfloat16, **where)
