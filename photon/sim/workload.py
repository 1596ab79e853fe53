"""Simulated requests: what is asked of the engine, what the answers will be, and when the next one comes in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import Literal

from photon.core import Image, Request
from photon.engine.intake import Arrival, Prepared
from photon.engine.ring import CropRing
from photon.errors import UsageError
from photon.models.config import TokenConfig
from photon.sim.forward import Answer
from photon.skills.grammar import Grammar, ObjectsGrammar, TextGrammar
from photon.skills.skill import Prompt, Script

Skill = Literal["text", "detect", "point"]
SKILLS: tuple[Skill, ...] = ("text", "detect", "point")
TOKENS = TokenConfig()
MAX_CROPS = 13
_PROMPT = 12  # tokens
_WORD = 1000
_MAX_TOKENS, _MAX_OBJECTS = 768, 50


@dataclass(frozen=True, slots=True)
class Mix:
    """``streams`` requests at a time. Text: ``length`` tokens, no image. Detect and point: ``objects`` in a picture of
    ``crops`` crops, ``questions`` of them about each picture."""

    skill: Skill = "text"
    streams: int = 32
    length: int = 110
    objects: int = 3
    questions: int = 1
    crops: int = 9

    def __post_init__(self) -> None:
        for name, low, high in (
            ("streams", 1, 256),
            ("length", 1, _MAX_TOKENS - 1),
            ("objects", 0, _MAX_OBJECTS - 1),
            ("questions", 1, 256),
            ("crops", 1, MAX_CROPS),
        ):
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name} must be from {low} to {high}, not {getattr(self, name)}")

    def __str__(self) -> str:
        if self.skill == "text":
            return f"text of {self.length} tokens, {self.streams} at a time"
        about = f"{self.skill}, objects {self.objects}, questions to an image {self.questions}, crops {self.crops}"
        return f"{about}, {self.streams} at a time"

    @property
    def groups(self) -> int:
        """Texts are started so that they end in so many groups in turn, some steps apart."""
        return max(1, min(self.streams, 16, self.length // 6))

    @property
    def rounds(self) -> int:
        """Rounds of requests that make a figure steady: text repeats itself exactly, other mixes about."""
        return max(1 if self.skill == "text" else 6, 3 // self.streams)

    def tokens(self) -> tuple[int, ...]:
        """What the model will sample."""
        if self.skill == "text":
            return (*[_WORD] * self.length, TOKENS.eos_id)
        parts = (TOKENS.coord_id, TOKENS.coord_id, TOKENS.size_id)[: 3 if self.skill == "detect" else 2]
        return (*parts * self.objects, TOKENS.eos_id)


def mix_of(skill: str, **numbers: int) -> Mix:
    """A mix from the command line. Raises ``UsageError`` for a skill that is none."""
    for known in SKILLS:
        if skill == known:
            return Mix(known, **numbers)
    raise UsageError(f"mix must be {', '.join(SKILLS[:-1])} or {SKILLS[-1]}, not {skill!r}")


class Feed:
    """Requests without end, or a ``limit`` of them; never more pictures at once than the ring has room for."""

    def __init__(self, mixes: list[Mix], ring: CropRing, entries: int, limit: int | None = None) -> None:
        """``mixes`` in turn. ``entries``: of the ring."""
        self._mixes, self._ring, self._entries, self._limit = mixes, ring, entries, limit
        self._numbers = count()
        self._turn = 0
        self._given = 0
        self._unread: deque[Prepared] = deque()

    def take(self, wanted: int) -> list[Arrival]:
        """Up to about ``wanted`` arrivals; all questions about one picture come together."""
        arrivals: list[Arrival] = []
        while len(arrivals) < wanted and (self._limit is None or self._given < self._limit):
            mix = self._mixes[self._turn % len(self._mixes)]
            prepared = None
            if mix.skill != "text":
                prepared = self._picture(mix)
                if prepared is None:
                    break
            asked = 1 if prepared is None else mix.questions
            arrivals += [self._arrival(mix, prepared) for _ in range(asked)]
            self._turn += 1
            self._given += asked
        return arrivals

    def _picture(self, mix: Mix) -> Prepared | None:
        """A picture, decoded; None while the ring is full."""
        self._unread = deque(prepared for prepared in self._unread if prepared.content is not None)
        if len(self._unread) >= self._entries:
            return None
        entry = self._ring.acquire(mix.crops, (1, max(1, mix.crops - 1)))
        prepared = Prepared(Image(b""), content=entry, ready=True)
        self._unread.append(prepared)
        return prepared

    def _arrival(self, mix: Mix, prepared: Prepared | None) -> Arrival:
        number = next(self._numbers)
        tokens = mix.tokens()
        grammar: Grammar
        if mix.skill == "text":
            request_skill: Literal["query", "detect", "point"] = "query"
            grammar = TextGrammar(TOKENS.eos_id, _MAX_TOKENS)
            if number < mix.streams:  # the first ones are cut short, so that not all ends come at once
                part = (number * mix.groups // mix.streams + 1) / mix.groups
                tokens = tokens[-max(2, int(len(tokens) * part)) :]
        else:
            request_skill = mix.skill
            grammar = ObjectsGrammar(TOKENS, mix.skill == "detect", _MAX_OBJECTS)
        image = None if prepared is None else prepared.image
        request = Request(Answer(number, tokens), image, request_skill, "simulated")
        script = Script(Prompt([_WORD] * _PROMPT, {}, {}), grammar, dict)
        return Arrival(request, script, prepared, 0.0, None)
