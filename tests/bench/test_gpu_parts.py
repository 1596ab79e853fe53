"""What the GPU day's figures and checks are made of, each against what is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from benchmarks.gpu import correctness, engines, model, safety
from benchmarks.gpu.correctness import differences
from benchmarks.gpu.floors import Floors
from benchmarks.gpu.kernels import DIM, HEADS, PAGE, PREFIX, case
from benchmarks.gpu.rows import Day, Unavailable
from benchmarks.gpu.traffic import Mix, Stretch, figures, steady
from photon.core import Request
from photon.engine.engine import Engine
from photon.engine.forward import Forward
from photon.engine.loop import Loop
from photon.engine.record import Span, StepRecord
from photon.models.config import MoondreamConfig

DAY = Day("cpu", True, math.inf)

#: Vision of 1, 2, 9 and 13 crops, prefill of 740, decode of 1, 32 and 64 rows, in ms; detect, requests/s.
PUBLISHED = {
    (4.8e12, 790e12): ((0.91, 1.75, 7.66, 11.0), 2.40, (0.60, 1.55, 2.52), (273, 222, 96, 72)),
    (8.0e12, 2250e12): ((0.32, 0.62, 2.69, 3.87), 0.84, (0.36, 0.93, 1.51), (727, 598, 267, 203)),
    (0.936e12, 71e12): ((10.1, 19.5, 85, 123), 26.7, (3.1, 7.9, 12.9), (26, 21, 8.8, 6.6)),
}


@pytest.mark.parametrize("ceilings", PUBLISHED)
def test_floors_of_the_published_model_on_data_sheets(ceilings: tuple[float, float]) -> None:
    """Counted by hand elsewhere, to three digits at most."""
    floors = Floors(MoondreamConfig(), *ceilings)
    vision, prefill, decode, detect = PUBLISHED[ceilings]
    crops = (1, 2, 9, 13)
    assert [1e3 * floors.vision(n) for n in crops] == pytest.approx(vision, rel=0.015)
    assert 1e3 * floors.prefill(740) == pytest.approx(prefill, rel=0.01)
    assert [1e3 * floors.decode(rows) for rows in (1, 32, 64)] == pytest.approx(decode, rel=0.01)
    assert [1 / floors.detect(crops=n, rows=64) for n in crops] == pytest.approx(detect, rel=0.01)


def test_floors_count_the_weights_that_the_model_has() -> None:
    """Matrices alone: norms, biases, the table of embeddings, positions and the vision part are not read in a step."""
    shape = model.config(small=True)
    loaded = model.random_model(shape, torch.device("cpu"), torch.float32).model
    counted = sum(
        parameter.numel()
        for name, parameter in loaded.named_parameters()
        if parameter.dim() == 2
        and name.startswith(("text.", "region."))
        and "wte" not in name
        and "features" not in name
    )
    assert Floors(shape, 1.0, 1.0, itemsize=4).step_bytes == pytest.approx(4 * counted, rel=0.02)
    assert Floors(shape, 1.0, 1.0, itemsize=4).position_bytes == 4 * 2 * 2 * 64


def record(kind: str, start: float, rows: int = 4, **changes: Any) -> StepRecord:
    """A forward of 2 ms and sampling of 1 ms right behind it."""
    forward, sample = Span(start, start + 2e-3), Span(start + 2e-3, start + 3e-3)
    spans = {"launch": Span(start, start), "wait": Span(start, start), "commit": Span(start, start)}
    plain: dict[str, Any] = {"finalize": None, "uploads": (), "copy": None, "idle": 0.0, "held": 0.0, "zombies": 0}
    values = {**spans, **plain, "forward": forward, "sample": sample, **changes}
    return StepRecord(number=0, kind=kind, slot=0, rows=rows, pictures=0, **values)


def test_figures_of_a_known_stretch() -> None:
    """Ends at 3, 7, 11, 15 and 25 ms: two decode steps have two more before them, one from 7 to 11 and one to 15."""
    records = [
        record("decode", 0.000), record("decode", 0.004, idle=1e-3), record("decode", 0.008, rows=2, idle=1e-3),
        record("decode", 0.012, zombies=3, idle=0.5e-3, held=0.5e-3), record("prefill", 0.022, idle=7e-3),
    ]  # fmt: skip
    told = figures(Stretch(records, answers=10, seconds=4.0))
    assert told["requests"] == (2.5, "1/s")
    assert told["decode step"].value == pytest.approx(4.0)
    assert told["idle per step"].value == pytest.approx((1 + 1 + 1 + 7) / 4)
    assert told["rows per decode step"].value == 3.5
    assert told["zombies"].value == pytest.approx(100 * 3 / 18)
    assert "decode step" not in figures(Stretch(records[2:], 1, 1.0))


@pytest.fixture(scope="module")
def small() -> Any:
    return model.random_model(model.config(small=True), torch.device("cpu"), torch.float32)


@pytest.fixture
def engine(small: Any) -> Iterator[Engine]:
    with engines.opened(DAY, small, graphs=False, depth=2, max_batch=2, stop_repetition=False) as engine:
        engines.cut_beforehand(engine, 3)
        yield engine


@pytest.mark.slow
def test_random_answers_end_where_they_should_and_not_by_a_cap(engine: Engine) -> None:
    requests = Mix("detect", questions=2).requests()
    with model.ending_after(objects=3, tokens=5):
        found = list(engine.run([next(requests) for _ in range(4)]))
        (text,) = engine.run([next(Mix("text").requests())])
    assert [(len(r.objects or ()), r.finish_reason, r.n_tokens, r.error) for r in found] == [(3, "stop", 9, None)] * 4
    assert (text.n_tokens, text.finish_reason) == (5, "stop")
    (endless,) = engine.run([Request(0, None, "query", "what?", max_tokens=9)])
    assert endless.finish_reason == "length"


@pytest.mark.slow
def test_questions_share_their_picture(engine: Engine) -> None:
    with model.ending_after(objects=1, tokens=1):
        steady(engine, Mix("detect", questions=5).requests(), inside=10, warm_up=5, seconds=0.05)
    assert engine.statistics.requests_per_prefix == pytest.approx(5, rel=0.5)
    assert engine.statistics.requests_per_prefix > 2


@pytest.mark.slow
def test_a_failing_request_is_no_figure(engine: Engine) -> None:
    del engine._prepare
    with pytest.raises(RuntimeError, match=r"request \(0, 0\) failed: IMAGE_EMPTY"):
        steady(engine, Mix("detect").requests(), inside=2, warm_up=1, seconds=0.05)


def test_a_planted_synchronisation_waits_at_every_finalize(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    drained: list[int] = []
    monkeypatch.setattr(engine._device, "drain", lambda: drained.append(1))
    real, ask = Loop.finalize, [Request(0, None, "query", "what?", max_tokens=4)]
    with engines.synchronising():
        list(engine.run(ask))
    assert len(drained) == sum(engine.statistics.steps.values()) == 4
    assert Loop.finalize is real


@pytest.mark.parametrize("graphs", ["yes", "no"])
def test_graphs_are_not_to_be_had_on_a_cpu(small: Any, graphs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if graphs == "no":  # a checkout from before there were any
        monkeypatch.setattr(Engine, "load", lambda model: None)
    with pytest.raises(Unavailable), engines.opened(DAY, small, graphs=True):
        pass


@pytest.mark.slow
def test_answers_on_poisoned_memory_are_the_same() -> None:
    told = safety._poisoned(DAY, False, 2)
    assert told["equal"] == (6, "answers")
    assert told["poisoned"].value == 29


@pytest.mark.slow
def test_an_answer_that_hangs_on_old_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upload of crops is left out: pictures are what the slot held, black at first and white once poisoned."""
    real = Forward.upload_crops

    def forgotten(self: Any, *arguments: Any) -> Any:
        operation = real(self, *arguments)
        operation.run = lambda: None
        return operation

    monkeypatch.setattr(Forward, "upload_crops", forgotten)
    with pytest.raises(AssertionError, match="of 6 answers differ"):
        safety._poisoned(DAY, False, 2)


def test_differences_are_named() -> None:
    assert differences({1: ("a",), 2: ("b",)}, {1: ("a",), 2: ("c",), 3: ("d",)}) == ["2", "3"]
    assert differences({1: ("a",)}, {}) == ["1"]
    assert differences({1: ("a",)}, {1: ("a",)}) == []


def test_quietly_eager_graphs_are_a_failure() -> None:
    class Told:
        def __init__(self, replays: int, missed: dict[str, str]) -> None:
            self.facts, self.statistics = {"graphs": {"missed": missed}}, self
            self.replays = replays

        def as_dict(self) -> dict[str, int]:
            return {"graph_replays": self.replays}

    correctness.check_captured(Told(3, {}))  # type: ignore[arg-type]
    for told in (Told(0, {}), Told(3, {"decode of 8 rows": "out of memory"})):
        with pytest.raises(AssertionError, match=r"replays of graphs; not captured: (nothing|.*out of memory)"):
            correctness.check_captured(told)  # type: ignore[arg-type]


@pytest.mark.slow
def test_pageable_copies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meta tensors stand for the device's."""
    device, host = torch.empty(3, device="meta"), torch.zeros(3)
    with safety.PinnedOnly() as mode:
        device.add_(1.0)
        assert mode.copies == 0
        with pytest.raises(AssertionError, match=r"copy_.* touches pageable host memory \[3\]"):
            device.copy_(host, non_blocking=True)
        monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: True)
        device.copy_(host, non_blocking=True)
    assert mode.copies == 2


@pytest.mark.parametrize(("count", "width"), [(1, 1), (4, 3)])
def test_the_kernels_case_is_what_it_says(count: int, width: int) -> None:
    """The reference on it, against a plain softmax over the places that each token may see."""
    from photon.kernels.flat import attention_reference

    q, keys, values, layout = case(count, width, torch.float32, torch.device("cpu"))
    found = attention_reference(q, keys, values, layout)
    assert q.shape == (count, width, HEADS, DIM)
    assert sorted(set(layout.prefix_lengths.tolist())) == ([PREFIX] if count < 3 else [0, PREFIX])
    flat_keys, flat_values = (pool.view(HEADS, -1, DIM) for pool in (keys, values))
    for row in range(count):
        for token in range(width):
            prefix, own = int(layout.prefix_lengths[row]), int(layout.offsets[row, token]) + 1
            places = [int(layout.prefix_pages[row, p // PAGE]) * PAGE + p % PAGE for p in range(prefix)]
            places += [int(layout.suffix_pages[row, p // PAGE]) * PAGE + p % PAGE for p in range(own)]
            assert places[-1] == layout.targets[row * width + token]
            assert len(places) == layout.positions[row * width + token] + 1
            scores = torch.einsum("hd,hpd->hp", q[row, token], flat_keys[:, places]) * DIM**-0.5
            wanted = torch.einsum("hp,hpd->hd", scores.softmax(-1), flat_values[:, places])
            torch.testing.assert_close(found[row, token], wanted, rtol=1e-5, atol=1e-6)
