"""The single-stream decoder: the batch engine's answers in every mode, and no stop of the host between two looks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch

import photon
from photon.core import Request
from photon.device import graphs
from photon.engine import fast_decoder
from photon.engine.fast_decoder import FastDecoder, Mode, buckets, load_on
from photon.engine.static_step import StaticStep
from photon.errors import ImageError, RowError, UsageError
from photon.models.load import LoadedModel
from photon.models.moondream import Moondream
from tests.engine import micro
from tests.engine.test_no_sync import NoSync
from tests.engine.test_sampling import agree
from tests.reference import FOLDER, IMAGES, QUESTION, assert_same, requests

TEXT = [id for id in requests() if isinstance(id, str) or id[1] in ("query", "caption", "spatial")]
MODES = [
    "eager",
    pytest.param("graph", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="graph needs a CUDA device")),
    pytest.param("compile", marks=pytest.mark.slow),
]


@cache
def tiny() -> LoadedModel:
    return load_on("photon://tiny", "cpu", "float32")


def decoder(**options: Any) -> FastDecoder:
    """Of the micro model, under the rules of ``micro.engine``."""
    return FastDecoder(micro.loaded(), **{"stop_repetition": False, **options})


def long_text(tokens: int = 40, **settings: Any) -> Request:
    return Request("long", micro.image(1), "query", "what", max_tokens=tokens, **settings)


@pytest.mark.parametrize("check_every", [1, 3, 64])
@pytest.mark.parametrize("id", TEXT, ids=str)
def test_the_references_answers(id: object, check_every: int) -> None:
    request, answer = requests()[id]
    assert_same(FastDecoder(tiny(), stop_repetition=False, check_every=check_every).answer(request), answer)


@pytest.mark.parametrize("image", [None, photon.Image(FOLDER / "images" / f"{IMAGES[0]}.png")], ids=["text", "image"])
def test_the_engines_answers_to_long_texts(image: photon.Image | None) -> None:
    asked = [
        Request(i, image, "query", QUESTION, max_tokens=64, **settings)
        for i, settings in enumerate(
            (
                {},
                {"temperature": 1.0, "seed": 1},
                {"temperature": 1.5, "seed": -1, "top_k": 40},
                {"temperature": 0.7, "seed": 2**64 - 1, "top_p": 0.9},
                {"temperature": 0.7, "seed": 2**70 + 3, "top_p": 0.9, "top_k": 5},
                {"temperature": 1e-60},
                {"temperature": 1e30, "top_k": 10**30},
            )
        )
    ]
    engine = photon.Engine.load("photon://tiny")
    answers = {result.id: result for result in engine.run(asked)}
    engine.close()
    ours = FastDecoder(tiny())
    for request in asked:
        result, answer = ours.answer(request), answers[request.id]
        for name in ("id", "text", "token_ids", "n_tokens", "finish_reason", "image", "error"):
            assert getattr(result, name) == getattr(answer, name), (request.id, name)


@pytest.mark.parametrize("mode", MODES)
def test_modes_agree(mode: Mode) -> None:
    """With the pipelined engine, greedy and drawn, with and without a picture, ended by a token or by a cap."""
    ours = decoder(mode=mode, check_every=4)
    reasons = set()
    for seed in range(40):
        skill = ("query", "caption")[seed % 2]
        picture = None if skill == "query" and seed % 4 == 0 else seed % 4
        request = micro.request(0, skill, picture, seed)
        if not request.settings.reasoning:
            result = ours.answer(request)
            assert micro.answer(result) == micro.alone(skill, picture, seed), seed
            reasons.add((result.finish_reason, request.settings.temperature > 0))
    assert len(reasons) == 4


def test_looking_less_often_costs_steps_and_changes_nothing() -> None:
    """An end is found late by less than ``check_every`` steps, and no step runs beyond the cap."""
    request = long_text(tokens=100, temperature=1.0, seed=29)
    tokens = None
    for every in (1, 2, 7, 32, 1000):
        ours = decoder(check_every=every)
        decoded = ours.decode(ours.open(request))
        tokens = tokens or decoded.tokens
        assert decoded.reason == "stop"
        assert decoded.tokens == tokens
        assert decoded.steps - decoded.surplus == len(tokens)  # the end token is a sample too, the first no step
        assert decoded.looks == 1 + math.ceil(len(tokens) / every)
        assert decoded.surplus < every
        assert decoded.steps <= 99
    assert tokens is not None
    assert len(tokens) == 24


def test_repetition_ends_a_text_where_the_engine_ends_it() -> None:
    request = Request("r", None, "query", QUESTION, max_tokens=200)
    engine = photon.Engine.load("photon://tiny")
    (answer,) = engine.run([request])
    engine.close()
    result = FastDecoder(tiny(), check_every=50).answer(request)
    assert (result.finish_reason, result.token_ids) == (answer.finish_reason, answer.token_ids)


# -- nothing stops the host ------------------------------------------------------------------------------------------


@contextmanager
def unguarded() -> Iterator[None]:
    with torch._C.DisableTorchFunction():
        yield


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and beginnings may stop the host; the steps in between may not."""
    for name in ("read", "begin"):
        original = getattr(StaticStep, name)

        def outside(self: StaticStep, *arguments: Any, original: Any = original) -> Any:
            with unguarded():
                return original(self, *arguments)

        monkeypatch.setattr(StaticStep, name, outside)


SETTINGS = ({}, {"temperature": 1.0, "seed": 3}, {"temperature": 1.0, "top_p": 0.9, "top_k": 20})


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("settings", SETTINGS, ids=["greedy", "drawn", "cut"])
def test_no_step_stops_the_host(settings: dict[str, Any]) -> None:
    ours = decoder(check_every=8)
    opening, again = (ours.open(long_text(**settings)) for _ in range(2))
    expected = ours.decode(opening)  # outside the guard: makes the cache
    with NoSync():
        decoded = ours.decode(again)
    assert decoded.steps >= 3
    assert decoded.tokens == expected.tokens


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("call", [lambda x: x.argmax().item(), lambda x: x.tolist(), lambda x: x[x > 0]])
def test_a_planted_call_is_caught(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = decoder()
    opening, again = (ours.open(long_text()) for _ in range(2))
    ours.decode(opening)
    logits = micro.loaded().model.text.logits
    monkeypatch.setattr(micro.loaded().model.text, "logits", lambda hidden: (call(hidden), logits(hidden))[1])
    with pytest.raises(AssertionError), NoSync():
        ours.decode(again)


@pytest.mark.parametrize("choice", ["greedy", "drawn", "cut"])
def test_a_step_runs_without_any_values(choice: Any) -> None:
    model = Moondream(micro.loaded().model.config)
    model.text.rope = model.text.rope.to("meta")
    step = StaticStep(model, 64, [3])
    with torch.inference_mode():
        before = {name: (buffer.data_ptr(), buffer.shape) for name, buffer in step.named_buffers()}
        for _ in range(3):
            step(choice)
        assert before == {name: (buffer.data_ptr(), buffer.shape) for name, buffer in step.named_buffers()}


def test_a_step_keeps_its_memory() -> None:
    """Buffers are updated, never replaced: a graph replays addresses."""
    ours = decoder()
    ours.answer(long_text())
    (step,) = ours._steps.values()
    before = {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    ours.answer(Request("other", None, "query", "why not", max_tokens=9, temperature=1.0, seed=8))
    assert before == {name: buffer.data_ptr() for name, buffer in step.named_buffers()}
    assert len(ours._steps) == 1


# -- the draws -------------------------------------------------------------------------------------------------------


def choose(logits: torch.Tensor, n: int, choice: Any, *settings: float) -> torch.Tensor:
    """n tokens chosen by a step from the same logits, at consecutive positions."""
    step = StaticStep(micro.loaded().model, n, [])
    step.draws.copy_(torch.tensor([settings]))
    step.seed.fill_(5)
    with torch.inference_mode():
        for _ in range(n):
            step._choose(logits[None], choice)
    return step.output


@pytest.mark.slow
def test_twenty_thousand_draws_follow_the_softmax() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 0.5, 1.5])
    agree(choose(logits, 20_000, "drawn", 0.7, 1.0, 0.0), (logits / 0.7).softmax(-1))


@pytest.mark.slow
@pytest.mark.parametrize(("top_p", "top_k", "kept"), [(1.0, 2, [1, 3]), (0.6, 0, [1, 3]), (0.82, 3, [1, 3])])
def test_draws_are_cut(top_p: float, top_k: int, kept: list[int]) -> None:
    probabilities = torch.tensor([0.05, 0.5, 0.15, 0.3])
    expected = torch.zeros(4)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    agree(choose(probabilities.log(), 4_000, "cut", 1.0, top_p, top_k), expected)


# -- capacity --------------------------------------------------------------------------------------------------------


def test_buckets() -> None:
    assert buckets(2048) == [256, 512, 1024, 2048]
    assert buckets(1000) == [256, 512, 1000]
    assert buckets(256) == [256]
    assert buckets(160) == [160]


def test_a_request_takes_the_smallest_cache_that_holds_it() -> None:
    ours = FastDecoder(tiny())
    for tokens in (5, 700, 6):
        ours.answer(Request("r", None, "query", QUESTION, max_tokens=tokens))
    assert sorted(capacity for capacity, _ in ours._steps) == [256, 1024]


def test_the_whole_capacity_can_be_used_and_no_more() -> None:
    ours = decoder(capacity=64, check_every=1000)
    prompt = ours.open(long_text()).positions
    step, _ = ours._ready(64, (), "greedy")
    with pytest.raises(UsageError, match=rf"take {prompt} positions and the answer up to {65 - prompt}: 65 .* of 64"):
        ours.answer(long_text(tokens=65 - prompt))
    assert ours.answer(long_text(tokens=64 - prompt)).n_tokens <= 64 - prompt
    assert not step.output[63:].any()


def test_what_a_broken_sequence_left_does_not_reach_the_next() -> None:
    ours = decoder()
    expected = ours.answer(long_text()).token_ids
    (step,) = ours._steps.values()
    with torch.inference_mode():
        step.keys.fill_(float("nan"))
        step.values.fill_(float("nan"))
    assert ours.answer(long_text()).token_ids == expected


# -- modes -----------------------------------------------------------------------------------------------------------


def test_graph_is_refused_without_cuda() -> None:
    with pytest.raises(UsageError, match="mode graph needs a CUDA device; the model is on cpu"):
        decoder(mode="graph")


def test_what_capturing_changed_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graph mode with a stand-in for the capture, which runs the step as often as the real one does."""
    captured = []

    def capture(run: Any) -> Any:
        captured.append(run)
        for _ in range(4):
            run()
        return run

    monkeypatch.setattr(graphs, "capture", capture)
    monkeypatch.setattr(fast_decoder, "unavailable", lambda mode, device: None)
    ours, eager = decoder(mode="graph"), decoder()
    for request in (long_text(), long_text(temperature=1.0), long_text(tokens=7), long_text(temperature=0.3, seed=9)):
        assert ours.answer(request).token_ids == eager.answer(request).token_ids
    assert len(captured) == 2  # greedy, and drawn whatever the temperature


def test_the_capture_warms_up_on_a_side_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of calls, on a stand-in. No GPU here: a real capture is not tested."""
    log: list[str] = []

    class Stream:
        def __init__(self, name: str = "side") -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            log.append(f"{self.name} waits for {other.name}")

    @contextmanager
    def within(what: Any, name: str = "graph", pool: Any = None) -> Iterator[None]:
        assert pool is None
        log.append(f"in {getattr(what, 'name', name)}")
        yield
        log.append("out")

    class Graph:
        def replay(self) -> None:
            log.append("replay")

    members = {
        "current_stream": lambda: Stream("current"), "Stream": Stream, "stream": within, "CUDAGraph": Graph,
        "graph": within,
    }  # fmt: skip
    for name, member in members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    replay = graphs.capture(lambda: log.append("run"))
    replay()
    assert log == [
        "side waits for current", "in side", "run", "run", "run", "out", "current waits for side",
        "in graph", "run", "out", "replay",
    ]  # fmt: skip


def test_a_failed_compilation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_(*_: Any, **__: Any) -> Any:
        def fail(choice: str) -> None:
            raise RuntimeError("No working C++ compiler found\nand much more")

        return fail

    monkeypatch.setattr(torch, "compile", compile_)
    with pytest.raises(UsageError, match=r"torch.compile failed \(RuntimeError: No working C\+\+ compiler found\)"):
        decoder(mode="compile").answer(long_text())


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fast"}, "mode must be eager, graph or compile, not 'fast'"),
        ({"check_every": 0}, "check_every must be at least 1, not 0"),
        ({"capacity": 161}, "capacity must be from 1 to the model's 160 positions, not 161"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        decoder(**options)


@pytest.mark.parametrize(("device", "dtype"), [("gpu", "auto"), ("cpu", "float16")])
def test_wrong_device_and_dtype(device: str, dtype: str) -> None:
    with pytest.raises(UsageError, match="must be auto"):
        FastDecoder.load("photon://tiny", device=device, dtype=dtype)


def test_what_is_not_plain_text_is_refused() -> None:
    ours = decoder()
    with pytest.raises(UsageError, match="not detect: use"):
        ours.answer(Request("d", micro.image(0), "detect", "cat"))
    with pytest.raises(UsageError, match="not a reasoned query: use"):
        ours.answer(Request("r", micro.image(0), "query", "why", reasoning=True))
    with pytest.raises(UsageError, match="knows no adapters: use"):
        ours.answer(Request("a", None, "query", "why", adapter="a"))
    with pytest.raises(ImageError):
        ours.answer(Request("i", photon.Image(b"no picture"), "caption"))
    assert issubclass(ImageError, RowError)


def test_load() -> None:
    ours = FastDecoder.load("photon://tiny", mode="eager", check_every=2, capacity=300)
    assert ours.check_every == 2
    assert ours.answer(Request("r", None, "query", QUESTION, max_tokens=5)).n_tokens <= 5
