"""Requests that are given up: at any tick, wherever they stand, on the checking device and on threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photon
from photon.core import Request, Result
from photon.device.threads import ThreadDevice
from photon.device.virtual import VirtualDevice
from photon.engine.engine import Engine
from photon.engine.loop import Loop
from photon.engine.step import Step
from tests.engine import micro
from tests.engine.scripted import PatientIntake

ASKS = [("detect", 0, 3), ("query", 0, 4), ("point", 0, 7), ("caption", 1, 8), ("detect", 2, 9), ("query", None, 10)]
ASKS *= 2
PLACES = "waiting for the encoder", "being encoded", "encoded", "waiting for a row", "bare", "running", "in flight"


def tick_by_tick(hook: Callable[[int, Loop], None]) -> mock._patch[Callable[[Loop, Step | None], Step | None]]:
    """``hook`` is called before every tick with the tick's number. All requests are there before the first."""
    count = 0
    tick = Loop.tick

    def hooked(loop: Loop, inflight: Step | None) -> Step | None:
        nonlocal count
        hook(count, loop)
        count += 1
        return tick(loop, inflight)

    return mock.patch.object(Loop, "tick", hooked)


def build(seed: int, depth: int, max_batch: int) -> Engine:
    base = micro.sizes(max_batch)
    pages = base.prefix_pages + base.suffix_pages  # room for one prefix
    return micro.checked(VirtualDevice(seed=seed), depth=depth, max_batch=max_batch, pages=pages, embeddings=2, ring=4)


def where(request: Request, loop: Loop) -> str:
    """Where a request stands between two ticks."""
    scheduler = loop._scheduler
    for sequence in scheduler._running:
        if sequence.request is request:
            return "in flight" if sequence.inflight_refs else "running"
    for picture in scheduler._pictures.values():
        for prefix in picture.prefixes.values():
            if any(sequence.request is request for sequence in prefix.waiting):
                if prefix.place is not None:
                    return "waiting for a row"
                if picture.embedding is None:
                    return "waiting for the encoder"
                return "being encoded" if picture.encoding else "encoded"
    return "bare" if any(s.request is request for s in scheduler._bare) else "answered"


def check(results: list[Result], requests: list[Request], cancelled: list[Request]) -> int:
    """Every request has one result; what was not given up has the answer it always has. Counts those given up."""
    assert sorted(result.id for result in results) == sorted(request.id for request in requests)
    given_up = 0
    for result in results:
        if result.error is not None:
            assert result.error.code == "CANCELLED"
            assert any(request.id == result.id for request in cancelled)
            given_up += 1
        else:
            assert micro.answer(result) == micro.alone(*ASKS[result.id])
    return given_up


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    cancels=st.lists(st.tuples(st.integers(0, 40), st.integers(0, len(ASKS) - 1)), max_size=8),
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    max_batch=st.integers(1, 5),
)
def test_whatever_is_given_up_when(cancels: list[tuple[int, int]], seed: int, depth: int, max_batch: int) -> None:
    requests = [micro.request(id, *ask) for id, ask in enumerate(ASKS)]
    engine = build(seed, depth, max_batch)

    def hook(number: int, _: Loop) -> None:
        for at, which in cancels:
            if at == number:
                engine.cancel(requests[which])

    with tick_by_tick(hook):
        results = list(engine.run(requests))
    given_up = check(results, requests, [requests[which] for _, which in cancels])
    assert given_up or not any(at == 0 for at, _ in cancels), "before the first tick nothing has been answered"


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("place", PLACES)
def test_a_request_is_given_up_wherever_it_stands(place: str, depth: int, everything: bool) -> None:
    """The first one that is found there, or all that are, which may be all requests about a picture."""
    requests = [micro.request(id, *ask) for id, ask in enumerate(ASKS)]
    cancelled: list[Request] = []

    def hook(_: int, loop: Loop) -> None:
        if not cancelled:
            found = [request for request in requests if where(request, loop) == place]
            for request in found if everything else found[:1]:
                loop.cancel(request, coming=False)
                cancelled.append(request)

    engine = build(depth, depth, 3)
    with mock.patch("photon.engine.engine.Intake", PatientIntake), tick_by_tick(hook):
        results = list(engine.run(requests))
    assert cancelled, f"no request was ever {place}"
    assert check(results, requests, cancelled) == len(cancelled)


def test_a_running_request_is_answered_at_once_and_takes_no_more_steps() -> None:
    request = Request(0, None, "query", "why?", max_tokens=200)
    engine = build(0, 2, 2)
    steps = []

    def hook(number: int, _: Loop) -> None:
        if number == 5:
            engine.cancel(request)

    with tick_by_tick(hook):
        (result,) = engine.run([request], trace=steps.append)
    assert result.error is not None
    assert result.error.code == "CANCELLED"
    assert len(steps) <= 7


def test_giving_up_what_was_answered_or_never_asked_changes_nothing() -> None:
    engine = build(1, 2, 2)
    requests = [micro.request(id, *ask) for id, ask in enumerate(ASKS)]
    stranger = micro.request(0, *ASKS[0])
    engine.cancel(requests[3])  # no run is under way
    results = []
    for result in engine.run(requests):
        engine.cancel(requests[result.id])
        engine.cancel(stranger)  # an equal request is another one
        results.append(result)
    assert check(results, requests, []) == 0
    assert check(list(engine.run(requests)), requests, []) == 0, "the next run starts afresh"


def test_from_another_thread_while_its_picture_is_decoded() -> None:
    """Answered on arrival. What was answered leaves no trace behind, however many are given up too late."""
    engine = micro.engine(ThreadDevice(), max_batch=2)
    last = Request("last", photon.Image(micro.image(1).source), "detect", "cat")
    given_up = threading.Event()
    prepare = engine._prepare

    def slow(image: photon.Image) -> object:
        if image is last.image:
            given_up.wait(10)
        return prepare(image)

    def asks() -> Iterator[Request]:
        yield answered
        for id in range(1, 40):
            yield micro.request(id, "point", 0, 3)
        yield last
        thread = threading.Thread(target=engine.cancel, args=(last,))
        thread.start()
        thread.join()
        given_up.set()

    loops: list[Loop] = []
    results = {}
    answered = micro.request(0, "point", 0, 3)
    with (
        mock.patch.object(engine, "_prepare", slow),
        tick_by_tick(lambda _, loop: loops.append(loop)),
    ):
        for result in engine.run(asks()):
            results[result.id] = result
            if answered.id in results:
                engine.cancel(answered)
    engine.close()
    assert [id for id, result in results.items() if result.error is not None] == ["last"]
    assert results["last"].error is not None
    assert results["last"].error.code == "CANCELLED"
    assert not loops[-1]._cancelled_ahead


def test_from_another_thread_while_steps_run() -> None:
    """A thread gives up every third request over and over."""
    engine = micro.engine(ThreadDevice(), max_batch=3)
    requests = [micro.request(id, *ask) for id, ask in enumerate(ASKS * 4)]
    done = threading.Event()

    def give_up() -> None:
        while not done.is_set():
            for request in requests[::3]:
                engine.cancel(request)
            time.sleep(0.001)

    thread = threading.Thread(target=give_up)
    thread.start()
    try:
        results = list(engine.run(requests))
    finally:
        done.set()
        thread.join()
        engine.close()
    assert sorted(result.id for result in results) == list(range(len(requests)))
    for result in results:
        if result.error is None:
            assert micro.answer(result) == micro.alone(*ASKS[result.id % len(ASKS)])
        else:
            assert result.error.code == "CANCELLED"
            assert result.id % 3 == 0
