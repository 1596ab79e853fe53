"""Thousands of requests of every length on the device that a CPU run uses, with failures, requests that are given up,
and runs left early."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import photon
from photon.core import Request
from photon.device.threads import ThreadDevice
from tests.engine import micro

BROKEN = (b"no picture", b"", b"\x89PNG\r\n\x1a\n")


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
def test_everything_is_home_after_two_thousand_requests(depth: int) -> None:
    """``run`` checks that pages, rows, slots and ring are home at its end; so does the run after one that was left."""
    dice = random.Random(depth)
    engine = micro.engine(ThreadDevice(), depth=depth, max_batch=6)
    pictures = [photon.Image(micro.image(i % 4).source) for i in range(40)]
    broken = [photon.Image(data) for data in BROKEN]

    asked: list[Request] = []

    def asks(count: int) -> Iterator[Request]:
        asked.clear()
        for request in draw(count):
            asked.append(request)
            yield request

    def draw(count: int) -> Iterator[Request]:
        for id in range(count):
            kind = dice.random()
            if kind < 0.1:
                yield Request(id, dice.choice(broken), dice.choice(["detect", "caption"]), "cat")
            elif kind < 0.15:
                yield Request(id, dice.choice(pictures), "query", "far too long " * 300)
            elif kind < 0.2:
                yield Request(id, None, "query", "why?", max_tokens=dice.randrange(1, 60))
            else:
                skill = dice.choice(["detect", "point", "query", "caption"])
                made = micro.request(id, skill, 0, dice.randrange(100))
                settings = {name: getattr(made.settings, name) for name in ("max_objects", "max_tokens", "reasoning")}
                yield Request(id, dice.choice(pictures), skill, made.prompt, **settings)

    codes: dict[str | None, int] = {}
    done = 0
    while done < 2000:
        run = engine.run(asks(500))
        leave_after = dice.choice([500, 500, dice.randrange(1, 400)])
        seen = set()
        for result in run:
            code = result.error.code if result.error else None
            codes[code] = codes.get(code, 0) + 1
            seen.add(result.id)
            if dice.random() < 0.15:
                engine.cancel(dice.choice(asked[-60:]))
            if len(seen) == leave_after:
                run.close()
                break
        if leave_after == 500:
            assert seen == set(range(500))
        done += len(seen)
    engine.close()
    assert set(codes) == {None, "IMAGE_UNIDENTIFIED", "IMAGE_EMPTY", "IMAGE_TRUNCATED", "PROMPT_TOO_LONG", "CANCELLED"}
    assert codes["CANCELLED"] > 50
    assert codes[None] > 1000
