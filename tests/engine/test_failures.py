"""What goes wrong inside a run, on the checking device: pictures that do not decode, operations that raise, requests
that are given up, and a queue of one."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photon
from photon.core import Request
from photon.device.device import Event, Operation, Stream
from photon.device.virtual import VirtualDevice
from photon.engine.intake import Intake
from photon.errors import EngineError
from tests.engine import micro

BROKEN = {b"": "IMAGE_EMPTY", b"no picture": "IMAGE_UNIDENTIFIED", b"\x89PNG\r\n\x1a\n": "IMAGE_TRUNCATED"}
ASK = st.tuples(
    st.sampled_from(["detect", "point", "query", "caption"]),
    st.one_of(st.integers(0, 3), st.sampled_from(list(BROKEN))),
    st.integers(0, 40),
    st.sampled_from([False, False, False, True]),
)
"""Skill, picture (whole or broken), wording, and whether it is given up on the way."""


def queue_of(capacity: int) -> Any:
    def intake(*given: Any, **named: Any) -> Intake:
        return Intake(*given, **named | {"max_ahead": capacity})

    return mock.patch("photon.engine.engine.Intake", intake)


def ask(id: int, skill: Any, picture: int | bytes, wording: int) -> Request:
    if isinstance(picture, int):
        return micro.request(id, skill, picture, wording)
    return Request(id, photon.Image(picture), skill, "thing")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    asks=st.lists(ASK, min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    max_batch=st.integers(1, 4),
    capacity=st.sampled_from([1, 2, 99]),
)
def test_one_result_for_each_request(
    asks: list[tuple[str, int | bytes, int, bool]], seed: int, depth: int, max_batch: int, capacity: int
) -> None:
    """Broken pictures fail with their code, what is given up may be, everything else has the answer it always has; and
    a queue of one request is enough."""
    engine = micro.checked(VirtualDevice(seed=seed), depth=depth, max_batch=max_batch, embeddings=2, ring=2)
    requests = [ask(id, *rest) for id, (*rest, _) in enumerate(asks)]
    seen = {}
    with queue_of(capacity):
        for result in engine.run(requests):
            assert result.id not in seen
            seen[result.id] = result
            for request, (*_, given_up) in zip(requests, asks, strict=True):
                if given_up and request.id not in seen:
                    engine.cancel(request)
    assert sorted(seen) == list(range(len(asks)))
    for id, (skill, picture, wording, given_up) in enumerate(asks):
        code = seen[id].error.code if seen[id].error is not None else None
        if given_up and code == "CANCELLED":
            continue
        if isinstance(picture, bytes):
            assert code == BROKEN[picture]
        else:
            assert micro.answer(seen[id]) == micro.alone(skill, picture, wording)


class FailingDevice(VirtualDevice):
    """The ``nth`` operation on ``stream`` raises; the others are as they were."""

    def __init__(self, *, seed: int, stream: Stream, nth: int) -> None:
        super().__init__(seed=seed)
        self.left = {stream: nth}

    def launch(self, stream: Stream, operation: Operation, after: Any = ()) -> Event:  # type: ignore[override]
        if stream in self.left:
            self.left[stream] -= 1
            if self.left[stream] == 0:
                operation.run = _catch_fire
        return super().launch(stream, operation, after)


def _catch_fire() -> None:
    raise RuntimeError("device on fire")


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    depth=st.sampled_from([1, 2]),
    stream=st.sampled_from(["compute", "upload", "readback"]),
    nth=st.integers(1, 18),
)
def test_an_operation_that_raises_ends_the_run_and_the_engine_goes_on(
    seed: int, depth: int, stream: Stream, nth: int
) -> None:
    """What was answered before is right and was answered once; the error says what the device was doing; the next run
    finds everything home."""
    asks = [(("detect", "query", "point", "caption")[i % 4], i % 3, 3 * i) for i in range(9)]
    device = FailingDevice(seed=seed, stream=stream, nth=nth)
    engine = micro.checked(device, depth=depth, max_batch=3, embeddings=2, ring=2)
    seen = {}
    run = engine.run([micro.request(id, *rest) for id, rest in enumerate(asks)])

    def take() -> None:
        for result in run:
            assert result.id not in seen
            seen[result.id] = micro.answer(result)

    with pytest.raises(EngineError, match=r"failed in a \w+ step of \d+ rows: RuntimeError: device on fire"):
        take()
    assert all(answer == micro.alone(*asks[id]) for id, answer in seen.items())
    again = {r.id: micro.answer(r) for r in engine.run([micro.request(id, *rest) for id, rest in enumerate(asks)])}
    assert again == {id: micro.alone(*rest) for id, rest in enumerate(asks)}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_queue_of_one_request_does_not_lock_up(depth: int) -> None:
    engine = micro.checked(VirtualDevice(seed=depth), depth=depth, max_batch=3, embeddings=2, ring=2)
    asks = [("point", 0, 1), ("detect", 0, 2), ("query", 1, 3), ("caption", 1, 4)] * 4
    with queue_of(1):
        results = list(engine.run(micro.request(id, *rest) for id, rest in enumerate(asks)))
    assert {r.id: micro.answer(r) for r in results} == {id: micro.alone(*rest) for id, rest in enumerate(asks)}
