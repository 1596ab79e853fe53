"""Adapters in the engine: the reference's answers, any mixture in one batch, few slots, and everything home."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photon
from photon.core import Request
from photon.device.device import Operation
from photon.device.threads import ThreadDevice
from photon.device.virtual import RaceError, VirtualDevice
from photon.engine.adapters import AdapterSlots
from photon.errors import UsageError
from tests.engine import micro
from tests.engine.scripted import PatientIntake
from tests.reference import ADAPTER, adapted, assert_same, picture, requests

NAMES = (None, *micro.ADAPTERS)
ASK = st.tuples(
    st.sampled_from(["detect", "point", "query", "caption"]),
    st.integers(0, 2),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from(NAMES),
)


@pytest.mark.parametrize("semantics", ["reference", pytest.param("merged", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("depth", "max_batch"), [pytest.param(1, 1, marks=pytest.mark.slow), (2, 16)])
def test_the_references_answers_alone_and_beside_requests_without(semantics: Any, depth: int, max_batch: int) -> None:
    """Tokens, bins and boxes bit for bit, in float32, in one shuffled batch with all that the plain model was asked."""
    engine = photon.Engine.load(
        "photon://tiny", decision="reference", depth=depth, max_batch=max_batch,
        adapters={"a": ADAPTER, "same": str(ADAPTER)}, adapter_semantics=semantics,
    )  # fmt: skip
    asked = {**requests(), **adapted(semantics == "merged", "a"), **adapted(semantics == "merged", "same")}
    order = list(asked)
    random.Random(max_batch).shuffle(order)
    results = {result.id: result for result in engine.run(asked[id][0] for id in order)}
    engine.close()
    assert results.keys() == asked.keys()
    for id, result in results.items():
        assert_same(result, asked[id][1])


@pytest.mark.parametrize(
    ("decision", "semantics", "merged"),
    [("masked", None, True), ("reference", None, False), ("masked", "reference", False), ("reference", "merged", True)],
)
def test_the_semantics_follow_the_decision_unless_they_are_named(decision: Any, semantics: Any, merged: bool) -> None:
    engine = photon.Engine.load(
        "photon://tiny", decision=decision, adapters={"a": ADAPTER}, adapter_semantics=semantics
    )
    engine.close()
    assert engine._forward._bank is not None
    assert engine._forward._bank._merged == merged


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    asks=st.lists(ASK, min_size=1, max_size=10),
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    max_batch=st.integers(1, 6),
    spare=st.integers(0, 12),
    entries=st.integers(1, 3),
    slots=st.integers(1, 3),
)
def test_any_mixture_answers_as_one_at_a_time_and_everything_comes_home(
    asks: list[tuple[str, int, int, bool, str | None]],
    seed: int,
    depth: int,
    max_batch: int,
    spare: int,
    entries: int,
    slots: int,
) -> None:
    """On the checking device: that slots are overwritten in time is proved; ``run`` checks that all slots are home."""
    base = micro.sizes(max_batch)
    pages = base.prefix_pages + base.suffix_pages + spare
    tight = {"pages": pages, "embeddings": entries, "ring": entries, "rows": max_batch + 1}
    engine = micro.checked(VirtualDevice(seed=seed), depth=depth, max_batch=max_batch, adapter_slots=slots, **tight)
    wanted, asked = {}, []
    for id, (skill, about, wording, bare, adapter) in enumerate(asks):
        seen = None if bare and skill == "query" else about
        wanted[id] = micro.alone(skill, seen, wording, adapter)
        asked.append(micro.request(id, skill, seen, wording, adapter))
    for _ in range(1 + seed % 2):  # a second run finds adapters in their slots
        assert {r.id: micro.answer(r) for r in engine.run(asked)} == wanted


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_slot_that_is_overwritten_beside_the_compute_stream_is_flagged(seed: int, elsewhere: bool) -> None:
    """A step multiplies with all slots, so weights on the upload stream would change under a step in flight."""
    device = VirtualDevice(seed=seed)
    engine = micro.checked(device, max_batch=4, adapter_slots=2)
    prefill, bank = engine._forward.prefill, engine._forward._bank
    assert bank is not None

    def wrong(slot: Any, work: Any, *rest: Any) -> Operation:
        if loads := list(work.loads):
            work.loads.clear()
            device.launch("upload", Operation(lambda: bank.load(loads), bank.sources(loads), bank.buffers))
        return prefill(slot, work, *rest)

    if elsewhere:
        engine._forward.prefill = wrong  # type: ignore[method-assign]
    asked = [micro.request(i, "caption", i % 3, i, NAMES[(i // 2) % 4]) for i in range(24)]
    with pytest.raises(RaceError, match="and nothing orders it after compute") if elsewhere else nullcontext():
        assert len(list(engine.run(asked))) == 24


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("spare", [0, 30])
def test_one_slot_for_three_adapters(depth: int, spare: int) -> None:
    """Pictures asked about in turn by all adapters and none, room for one prefix or a few: no deadlock."""
    base = micro.sizes(3)
    pages = base.prefix_pages + base.suffix_pages + spare
    engine = micro.engine(ThreadDevice(), depth=depth, max_batch=3, adapter_slots=1, pages=pages)
    asks = [("point", (0, 0, 1, 0, 2, 1)[i % 6], i % 30, NAMES[(i * 7) % 4]) for i in range(120)]
    results = list(engine.run(micro.request(i, *ask) for i, ask in enumerate(asks)))
    assert {r.id: micro.answer(r) for r in results} == {i: micro.alone(*ask) for i, ask in enumerate(asks)}
    engine.close()


def test_adapters_change_answers() -> None:
    """Or the tests above would show nothing."""
    answers = {name: [micro.alone("detect", i % 3, i, name) for i in range(12)] for name in NAMES}
    for name in micro.ADAPTERS:
        assert sum(a != b for a, b in zip(answers[None], answers[name], strict=True)) > 6


def test_one_encoding_and_a_prefix_for_each_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many adapters ask about an image, it is encoded once; only those of one adapter share its prefix."""
    monkeypatch.setattr("photon.engine.engine.Intake", PatientIntake)
    engine = micro.engine(VirtualDevice(), max_batch=8, adapter_slots=3)
    list(engine.run(micro.request(i, "point", 0, i, NAMES[i % 4]) for i in range(8)))
    statistics = engine.statistics
    assert (statistics.steps["vision"], statistics.prefixes, statistics.requests_on_images) == (1, 4, 8)


def test_steps_without_adapters_are_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = micro.engine(VirtualDevice(), adapter_slots=2)
    bank = engine._forward._bank
    assert bank is not None
    monkeypatch.setattr(bank, "deltas", None)  # would raise if it were called
    results = list(engine.run(micro.request(i, "detect", i % 3, i) for i in range(6)))
    assert [micro.answer(r) for r in sorted(results, key=lambda r: str(r.id))] == [
        micro.alone("detect", i % 3, i) for i in range(6)
    ]


def test_an_adapter_that_is_not_loaded() -> None:
    """Refused alone; the others about its picture are answered."""
    engine = micro.engine(ThreadDevice(), adapter_slots=2)
    shared = photon.Image(picture("noise_160x200"))
    asked = [
        Request("ok", shared, "point", "x", max_objects=1, adapter="one"),
        Request("near", shared, "point", "x", adapter="tree"),
        Request("far", shared, "point", "x", adapter="elsewhere"),
    ]
    errors = {r.id: r.error for r in engine.run(asked)}
    engine.close()
    assert errors["ok"] is None
    assert errors["near"] is not None
    assert errors["far"] is not None
    assert errors["near"].code == errors["far"].code == "ADAPTER_UNKNOWN"
    assert errors["near"].message == "no adapter 'tree' is loaded; did you mean 'three'?"
    assert errors["far"].message == "no adapter 'elsewhere' is loaded; those loaded: one, two, three"


def test_wrong_settings_and_arguments() -> None:
    with pytest.raises(ValueError, match="setting adapter must be a name or None, not ''"):
        Request(0, None, "query", "why", adapter="")
    for arguments, message in (
        ({"adapter_semantics": "merge"}, "adapter_semantics must be None or merged or reference, not 'merge'"),
        ({"adapter_slots": 0}, "adapter_slots must be auto or an integer from 1 to 4096, not 0"),
        ({"adapters": {"a": Path("no.safetensors")}}, "no.safetensors: there is no such file; an adapter is one file"),
    ):
        with pytest.raises(UsageError, match=message):
            photon.Engine.load("photon://tiny", **arguments)  # type: ignore[arg-type]


def test_slots_are_counted_and_the_longest_unused_goes_first() -> None:
    slots = AdapterSlots(2)
    loads: list[tuple[int, str]] = []
    assert slots.acquire(None, loads) == 0
    assert [slots.acquire(name, loads) for name in ("a", "b", "a")] == [1, 2, 1]
    assert loads == [(1, "a"), (2, "b")]
    assert (slots.has_room("c"), slots.has_room("b"), slots.has_room(None)) == (False, True, True)
    slots.release(2)
    slots.release(1)
    assert slots.has_room("c")
    with pytest.raises(AssertionError, match="1 uses of adapter slots are still out"):
        slots.check_home()
    slots.release(1)
    with pytest.raises(AssertionError, match="adapter slot 1 is released, but nobody uses it"):
        slots.release(1)
    slots.check_home()
    assert slots.acquire("b", loads) == 2, "still there"
    assert slots.acquire("c", loads) == 1
    assert loads == [(1, "a"), (2, "b"), (1, "c")]
    assert not slots.has_room("a")
    slots.reset()
    assert slots.acquire("b", loads) == 1
    assert loads[-1] == (1, "b"), "after a reset nothing is taken for loaded"
