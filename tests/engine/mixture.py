"""Requests as a rough day brings them: every skill and length, broken pictures, prompts that do not fit, and some that
are given up on the way."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator

import photon
from photon.core import Request
from photon.engine.engine import Engine
from tests.engine import micro

BROKEN = (b"no picture", b"", b"\x89PNG\r\n\x1a\n")
CODES = {None, "IMAGE_UNIDENTIFIED", "IMAGE_EMPTY", "IMAGE_TRUNCATED", "PROMPT_TOO_LONG", "CANCELLED"}
GIVEN_UP = 0.15
RECENT = 60


class Mixture:
    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine, self._dice = engine, random.Random(seed)
        self._recent: deque[Request] = deque(maxlen=RECENT)
        self.codes: Counter[str | None] = Counter()

    def run(self, count: int, *, leave_after: int | None = None) -> set[object]:
        """One run of ``count`` requests, left early where that is said: the ids that were answered, each once."""
        seen: set[object] = set()
        run = self._engine.run(self._asks(count))
        for result in run:
            assert result.id not in seen
            seen.add(result.id)
            self.codes[result.error.code if result.error else None] += 1
            if self._dice.random() < GIVEN_UP:
                self._engine.cancel(self._dice.choice(self._recent))
            if len(seen) == leave_after:
                run.close()
                break
        return seen

    def _asks(self, count: int) -> Iterator[Request]:
        """Pictures are new objects in every run, several questions to each."""
        pictures = [photon.Image(micro.image(i % 4).source) for i in range(max(1, count // 12))]
        for id in range(count):
            request = self._ask(id, pictures)
            self._recent.append(request)
            yield request

    def _ask(self, id: int, pictures: list[photon.Image]) -> Request:
        dice = self._dice
        kind = dice.random()
        if kind < 0.1:
            return Request(id, photon.Image(dice.choice(BROKEN)), dice.choice(["detect", "caption"]), "cat")
        if kind < 0.15:
            return Request(id, dice.choice(pictures), "query", "far too long " * 300)
        if kind < 0.2:
            return Request(id, None, "query", "why?", max_tokens=dice.randrange(1, 60))
        made = micro.request(id, dice.choice(["detect", "point", "query", "caption"]), 0, dice.randrange(100))
        settings = {name: getattr(made.settings, name) for name in ("max_objects", "max_tokens", "reasoning")}
        return Request(id, dice.choice(pictures), made.skill, made.prompt, **settings)
