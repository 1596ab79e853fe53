"""Engines whose steps are captured, on a device that keeps to the rules of CUDA graphs (``tape``): the reference's
answers, a lone request's answers, order and memory proved, and faults of the kind that graphs invite.

What no CPU can show: that CUDA captures these operators, and what it saves. Not run on a GPU by us.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from photon.core import Request
from photon.device.device import Operation
from photon.device.threads import ThreadDevice
from photon.engine import captured as captured_module
from photon.engine.captured import CapturedForward
from photon.engine.engine import Engine
from photon.engine.record import StepRecord
from photon.engine.sizes import choose_sizes
from photon.images.decode import DecodePolicy
from photon.kernels.flat import FlatLayout
from photon.models.load import load_model
from tests.engine import micro, tape
from tests.engine.mixture import CODES, Mixture
from tests.engine.tape import CaptureError, TapeThreads, TapeVirtual
from tests.engine.test_invariants import ASK
from tests.reference import assert_same, requests

SKILLS = ("detect", "point", "query", "caption", "query", "detect")
Ask = tuple[str, int, int, str | None]


def asks(count: int, seed: int, adapters: bool = False) -> list[Ask]:
    dice = random.Random(seed)
    names = (None, *micro.ADAPTERS) if adapters else (None,)
    return [(SKILLS[i % 6], i % 4, dice.randrange(200), dice.choice(names)) for i in range(count)]


def answers(engine: Engine, asked: list[Ask]) -> dict[int, tuple[Any, ...]]:
    results = engine.run(micro.request(i, *ask) for i, ask in enumerate(asked))
    return {int(str(result.id)): micro.answer(result) for result in results}


def alone(asked: list[Ask]) -> dict[int, tuple[Any, ...]]:
    return {i: micro.alone(*ask) for i, ask in enumerate(asked)}


def greedy(count: int, *, only: str | None = None) -> list[Request]:
    """Longer texts, and boxes every third, behind prompts of more than a page. Nothing is drawn."""
    made = []
    for i in range(count):
        skill: Any = only or ("detect" if i % 3 == 2 else "query")
        most: dict[str, Any] = {"max_objects": 3} if skill == "detect" else {"max_tokens": 24}
        made.append(Request(i, micro.image(i % 4), skill, "what a thing is this " * (1 + i % 3) + str(i), **most))
    return made


@cache
def without_graphs(decision: Any = "reference") -> dict[object, tuple[Any, ...]]:
    """The answers to ``greedy(12)``."""
    engine = micro.engine(ThreadDevice(), max_batch=4, decision=decision)
    found = {result.id: micro.answer(result) for result in engine.run(greedy(12))}
    engine.close()
    return found


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = tape.engine(TapeThreads(), max_batch=4)
    yield made
    made.close()


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "max_batch"), [(1, 5), (2, 3), (2, 16)])
def test_the_references_answers(depth: int, max_batch: int) -> None:
    device = TapeThreads()
    loaded = load_model("photon://tiny", device=device.torch_device, dtype=torch.float32)
    where: Any = {"device_type": "cpu", "free_bytes": 1 << 30, "itemsize": 4, "memory_fraction": 0.9}
    sizes = choose_sizes(loaded.model.config, max_batch=max_batch, **where)
    rest: Any = {"decision": "reference", "stop_repetition": False, "policy": DecodePolicy()}
    engine = Engine(loaded, device, sizes, depth=depth, graphs=True, **rest)
    asked = requests()
    results = {result.id: result for result in engine.run(request for request, _ in asked.values())}
    assert results.keys() == asked.keys()
    for id, result in results.items():
        assert_same(result, asked[id][1])
    device.check(engine)
    engine.close()
    steps = engine.statistics.steps
    assert engine.statistics.graph_replays >= steps["decode"] + steps["vision"]
    assert engine.statistics.graph_fallbacks == {}


@pytest.mark.parametrize(("depth", "decision"), [(1, "reference"), (2, "masked")])
def test_answers_are_those_of_an_engine_without_graphs(depth: int, decision: Any) -> None:
    """Nothing is drawn, so that whatever is sampled is sampled by a graph."""
    engine = tape.engine(TapeThreads(), depth=depth, max_batch=4, decision=decision)
    assert {r.id: micro.answer(r) for r in engine.run(greedy(12))} == without_graphs(decision)
    assert engine.statistics.graph_fallbacks == {}
    assert engine.statistics.graph_replays > 20
    engine.close()


@pytest.mark.slow
def test_answers_of_a_rough_mixture_with_adapters() -> None:
    device = TapeThreads()
    engine = tape.engine(device, max_batch=3, adapter_slots=2)
    asked = asks(30, 3, adapters=True)
    assert answers(engine, asked) == alone(asked)
    assert engine.statistics.graph_fallbacks.keys() == {"sampling of drawn rows"}
    device.check(engine)
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_everything_is_home_after_a_rough_day(depth: int) -> None:
    engine = tape.engine(TapeThreads(), depth=depth, max_batch=6)
    mixture, dice = Mixture(engine, depth), random.Random(depth)
    for _ in range(6):
        leave_after = dice.choice([None, dice.randrange(1, 150)])
        seen = mixture.run(200, leave_after=leave_after)
        assert leave_after is not None or seen == set(range(200))
    assert mixture.run(200) == set(range(200))
    engine.close()
    assert set(mixture.codes) == CODES


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    asked=st.lists(ASK, min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    max_batch=st.integers(1, 3),
)
def test_the_invariants_hold(asked: list[tuple[str, int, int, bool]], seed: int, depth: int, max_batch: int) -> None:
    """As in ``test_invariants``: order proved by the checker, page by page, no memory asked for, everything home."""
    device = TapeVirtual(seed=seed)
    engine = tape.engine(device, depth=depth, max_batch=max_batch)
    device.order_by_pages(engine._forward._pool.keys, engine._forward._pool.values)
    device.seal()
    wanted, made = {}, []
    for id, (skill, picture, wording, bare) in enumerate(asked):
        about = None if bare and skill == "query" else picture
        wanted[id] = micro.alone(skill, about, wording)
        made.append(micro.request(id, skill, about, wording))
    assert {result.id: micro.answer(result) for result in engine.run(made)} == wanted
    device.check(engine)


# -- what is replayed ------------------------------------------------------------------------------------------------


def test_a_text_step_is_one_replay_and_a_grounded_one_is_two(engine: Engine) -> None:
    records: list[StepRecord] = []
    assert len(list(engine.run(greedy(8, only="query"), trace=records.append))) == 8
    decodes = [record for record in records if record.kind == "decode"]
    assert len(decodes) > 5
    assert all(record.sample is None and len(record.uploads) == 1 and record.copy for record in decodes)
    steps = engine.statistics.steps
    assert engine.statistics.graph_replays == steps["decode"] + steps["prefill"] + steps["vision"]

    records.clear()
    assert len(list(engine.run(greedy(6, only="detect"), trace=records.append))) == 6
    assert all(record.sample is not None for record in records if record.kind != "vision")
    steps = engine.statistics.steps
    assert engine.statistics.graph_replays == 2 * steps["decode"] + steps["prefill"] + steps["vision"]


def test_padding_leaves_nothing_behind(engine: Engine) -> None:
    """The scratch page stays finite (it is read with weight zero, and 0 x NaN is NaN); the dummy row feeds token 0."""
    assert len(list(engine.run(greedy(11)))) == 11
    pool, table = engine._forward._pool, engine._table
    assert pool.keys[:, :, 0].isfinite().all()
    assert pool.values[:, :, 0].isfinite().all()
    assert pool.keys[:, :, 0].any()  # something was padded
    dummy = table.dummy
    assert (table.next_ids[dummy].item(), table.next_kinds[dummy].item()) == (0, 0)
    assert table.next_values[dummy].tolist() == [0, 0]


def test_no_buffer_moves() -> None:
    device = TapeThreads()
    engine = tape.engine(device, max_batch=3, adapter_slots=1)
    before = {name: buffer.data_ptr() for name, buffer in tape.buffers_of(engine).items()}
    assert len(answers(engine, asks(20, 1, adapters=True))) == 20
    assert {name: buffer.data_ptr() for name, buffer in tape.buffers_of(engine).items()} == before
    device.check(engine)
    assert sum(tape.replays for tape in device.tapes) > 20
    engine.close()


# -- faults ----------------------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def narrow_tables(patch: Patch) -> None:
    """As the eager layout does: tables no wider than the longest row, which at capture has no page."""
    real = captured_module.bucket_layout

    def narrow(*given: Any, **options: Any) -> Any:
        at, layout = real(*given, **options)
        table: Any = given[1]
        width = table.length[given[2]].max(initial=1) // options["page_size"] + 1
        layout.suffix_pages = layout.suffix_pages[:, :width]
        return at, layout

    patch.setattr(captured_module, "bucket_layout", narrow)


def frozen_branch(patch: Patch) -> None:
    """Coordinates are embedded where there are any; at capture there are none."""
    step = CapturedForward._step

    def without_values(self: Any, slot: Any, at: Any, layout: FlatLayout) -> Operation:
        operation = step(self, slot, at, layout)
        embed = self._model.embed

        def run() -> None:
            self._model.__dict__["embed"] = lambda ids, kinds, values: embed(ids)
            operation.run()
            del self._model.__dict__["embed"]

        return Operation(run, operation.reads, operation.writes)

    patch.setattr(CapturedForward, "_step", without_values)


def baked_rows(patch: Patch) -> None:
    """The rows' numbers as they were at capture, and not the slot's memory."""
    step = CapturedForward._step
    patch.setattr(CapturedForward, "_step", lambda self, slot, at, layout: step(self, slot, at.clone(), layout))


def baked_count(patch: Patch) -> None:
    """A number of rows that was read when the graph was made."""
    leave = CapturedForward._leave

    def fewer(self: Any, slot: Any, at: Any, samples: Any) -> None:
        n = len(at) // 2 + 1
        leave(self, slot, at[:n], type(samples)(*(column[:n] for column in samples)))

    patch.setattr(CapturedForward, "_leave", fewer)


def result_outside(patch: Patch) -> None:
    """Hidden states are handed on in memory that graphs share, not in the slot."""
    step, alone = CapturedForward._step, CapturedForward._heads_alone
    left: dict[Any, Any] = {}

    def leaving(self: Any, slot: Any, at: Any, layout: Any) -> Operation:
        operation = step(self, slot, at, layout)

        def run() -> None:
            operation.run()
            left[slot, len(at)] = slot.hidden[: len(at)].clone()

        return Operation(run, operation.reads, operation.writes)

    def taking(self: Any, slot: Any, at: Any, demand: Any, heads: Any) -> Operation:
        operation = alone(self, slot, at, demand, heads)

        def run() -> None:
            slot.hidden[: len(at)].copy_(left[slot, len(at)])
            operation.run()

        return Operation(run, operation.reads, [*operation.writes, slot.hidden])

    patch.setattr(CapturedForward, "_step", leaving)
    patch.setattr(CapturedForward, "_heads_alone", taking)


@pytest.mark.parametrize("spoil", [narrow_tables, frozen_branch, baked_rows, baked_count, result_outside])
def test_what_a_graph_freezes_shows_in_the_answers(
    spoil: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    engine = micro.engine(TapeThreads(), max_batch=4, graphs=True)
    ours = {r.id: micro.answer(r) for r in engine.run(greedy(12))}
    assert engine.statistics.graph_replays > 0
    monkeypatch.undo()
    assert ours.keys() == without_graphs().keys()
    assert ours != without_graphs()
    engine.close()


@pytest.mark.parametrize("spoil", [baked_rows, result_outside])
def test_memory_that_nobody_keeps_is_found(spoil: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch)
    with pytest.raises(CaptureError, match=r"a graph touches memory \[\d.*\] that its operation does not declare"):
        tape.engine(TapeThreads(), max_batch=2)


@pytest.mark.parametrize("name", ["next_ids", "hidden", "landing"])
def test_a_buffer_that_is_replaced_is_found(name: str) -> None:
    """Updated in place it would be seen; a new one is not."""
    device = TapeThreads()
    engine = tape.engine(device, max_batch=2)
    owner = engine._table if name == "next_ids" else next(iter(engine._slots))
    setattr(owner, name, getattr(owner, name).clone())
    with pytest.raises(CaptureError, match="that is no buffer of the engine any more"):
        device.check(engine)
    engine.close()


def test_staging_that_is_moved_is_refused() -> None:
    """Something that is laid down before a captured step's numbers."""
    engine = tape.engine(TapeThreads(), max_batch=2)
    stage = engine._forward._stage_decode  # type: ignore[attr-defined]

    def after_something(slot: Any, *rest: Any) -> Any:
        slot.inputs.place(torch.zeros(1, dtype=torch.int64).numpy())
        return stage(slot, *rest)

    engine._forward._stage_decode = after_something  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="begin where its slot's staging does"):
        list(engine.run(greedy(3)))
    engine.close()
