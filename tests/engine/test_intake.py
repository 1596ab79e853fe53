"""Bounds and sharing on the way in."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from photon.core import Image, ImageInfo, Request
from photon.engine.intake import Arrival, Intake
from photon.errors import ImageError, RowError

INFO = ImageInfo(1, 1)


def ask(id: int, image: Image) -> Request:
    return Request(id, image, "caption")


def intake(requests: Any, **changes: Any) -> Intake:
    defaults: dict[str, Any] = {
        "prepare": lambda image: (INFO, image.source),
        "script": lambda request: request.id,
        "workers": 2,
    }
    return Intake(requests, **{**defaults, **changes})


def collect(source: Intake) -> list[Arrival]:
    arrivals: list[Arrival] = []
    while not source.exhausted:
        for arrival in source.poll(wait=True):
            arrivals.append(arrival)
            source.finished()
            if arrival.prepared is not None:
                source.forget(arrival.prepared)
    source.close()
    return arrivals


def test_everything_arrives_once() -> None:
    arrivals = collect(intake([ask(i, Image(bytes([i % 7]))) for i in range(200)]))
    assert sorted(a.request.id for a in arrivals) == list(range(200))
    assert all(a.script == a.request.id for a in arrivals)
    assert all(a.prepared is not None and a.prepared.info is INFO for a in arrivals)


def test_requests_of_one_image_share_one_preparation() -> None:
    calls: list[Image] = []
    image = Image(b"x")
    source = intake([ask(i, image) for i in range(20)], prepare=lambda image: (calls.append(image), (INFO, None))[1])
    arrivals: list[Arrival] = []
    while not source.exhausted:
        arrivals += source.poll(wait=True)
    source.close()
    assert len(calls) == 1
    assert len({id(a.prepared) for a in arrivals}) == 1


def test_a_picture_is_kept_while_a_request_for_it_is_on_its_way() -> None:
    image = Image(b"x")
    source = intake([ask(0, image), ask(1, image)], max_ahead=1)
    (first,) = source.poll(wait=True)
    assert first.prepared is not None
    source.finished()
    while not source.exhausted and not first.prepared.undelivered:
        time.sleep(0.001)
    assert not source.forget(first.prepared)
    (second,) = source.poll(wait=True)
    assert second.prepared is first.prepared
    assert source.forget(first.prepared)
    source.finished()
    assert source.exhausted
    source.close()


@pytest.mark.parametrize("at_once", [False, True])
def test_bytes_are_bounded_and_a_large_picture_comes_in_alone(at_once: bool) -> None:
    """``at_once``: with its last answer, a picture is let go of as well."""
    inside = peak = 0
    lock = threading.Lock()

    def prepare(image: Image) -> tuple[ImageInfo, None]:
        nonlocal inside, peak
        with lock:
            inside += 1
            peak = max(peak, inside)
        return INFO, None

    source = intake([ask(i, Image(b"1" * 15)) for i in range(30)], prepare=prepare, budget=45)
    seen = 0
    while not source.exhausted:
        arrivals = source.poll(wait=True)
        time.sleep(0.002)
        for arrival in arrivals:
            with lock:
                inside -= 1
            seen += 1
            assert arrival.prepared is not None
            source.finished(arrival.prepared if at_once else None)
            if not at_once:
                source.forget(arrival.prepared)
    source.close()
    assert seen == 30
    assert peak <= 3  # of 15 bytes each
    assert len(collect(intake([ask(i, Image(b"1" * 100)) for i in range(5)], budget=45))) == 5


def test_requests_are_bounded() -> None:
    pulled = 0

    def endless() -> Iterator[Request]:
        nonlocal pulled
        while True:
            pulled += 1
            yield ask(pulled, Image(b"x"))

    source = intake(endless(), max_ahead=8)
    time.sleep(0.1)
    assert pulled == 9  # eight inside, one at the door
    source.close()


def test_a_failed_picture_and_a_failed_prompt_are_arrivals() -> None:
    def prepare(image: Image) -> tuple[ImageInfo, None]:
        if image.source == b"bad":
            raise ImageError("IMAGE_TRUNCATED", "cut short")
        return INFO, None

    def script(request: Request) -> object:
        if request.id == 2:
            raise RowError("PROMPT_NULL", "empty")
        return "script"

    images = [b"bad", b"good", b"good"]
    arrivals = {
        a.request.id: a
        for a in collect(intake([ask(i, Image(b)) for i, b in enumerate(images)], prepare=prepare, script=script))
    }
    assert arrivals[0].prepared is not None
    assert arrivals[0].prepared.failure is not None
    assert arrivals[0].prepared.failure.code == "IMAGE_TRUNCATED"
    assert arrivals[1].failure is None
    assert arrivals[2].failure is not None
    assert arrivals[2].failure.code == "PROMPT_NULL"


def test_a_bug_in_preparation_ends_the_run() -> None:
    def prepare(image: Image) -> Any:
        raise ZeroDivisionError("ours")

    source = intake([ask(0, Image(b"x"))], prepare=prepare)
    with pytest.raises(ZeroDivisionError, match="ours"):
        collect(source)
    source.close()
