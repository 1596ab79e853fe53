"""Which tokens may come next: small state machines that the engine advances one sample at a time.

A grammar says what it demands of the next sample, is told what was sampled (``advance``), and says when and why it is
done. It knows nothing of batches, devices or text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from photon.core import FinishReason
from photon.models.config import TokenConfig
from photon.skills.repetition import PlaceRepetition, TextRepetition


class Want:
    """What a sample is made of, as bits: free text with coordinates in between is TOKEN | COORDINATE.

    DECIDE is the choice at an object boundary, in place of TOKEN: end, or go on with a coordinate. Plain integers,
    since they go by the row through the tick.
    """

    NOTHING = 0
    TOKEN = 1
    COORDINATE = 2
    SIZE = 4
    DECIDE = 8
    BOUNDARY = DECIDE | COORDINATE


NOBODY = -1
"""In place of an id: none."""


class Demand(NamedTuple):
    """``want``: bits of ``Want``. ``forced``: the sample's id where it has neither TOKEN nor DECIDE. ``ban``,
    ``ban_too``: ids that a TOKEN may not be."""

    want: int
    forced: int = 0
    ban: int = NOBODY
    ban_too: int = NOBODY

    @classmethod
    def text(cls, banned: tuple[int, ...] = (), want: int = Want.TOKEN) -> Demand:
        """Free choice but for at most two ``banned`` ids."""
        return cls(want, 0, banned[0], banned[-1]) if banned else cls(want)


class MaskKind(IntEnum):
    """How much of the past a sample's mask depends on: nothing, the step's kind, or the last committed token."""

    NONE = 0
    CONSTANT = 1
    GRAMMAR = 2


Sample: TypeAlias = tuple[int, int, int, float, float, float]
"""One committed sample: ``token, first, second, p_end, mass_first, mass_second``.

``first`` is a coordinate's or width's bin, ``second`` a height's. ``p_end`` is the probability of the end token among
the candidates; ``mass_first`` and ``mass_second`` are the probability within a few bins of the chosen ones. A plain
tuple: the tick takes in one for each row.
"""


class Grammar(Protocol):
    @property
    def mask(self) -> MaskKind:
        """The same for as long as the grammar lives."""

    @property
    def tokens(self) -> list[int]:
        """Ids emitted so far, the end token left out."""

    @property
    def max_samples(self) -> int:
        """No answer takes more samples than this; the engine launches no more."""

    def demand(self, nth: int) -> Demand:
        """What the next sample, the ``nth`` from 1, has to be.

        Short of ``MaskKind.GRAMMAR`` this hangs on whether it is the first alone: samples may be in flight that the
        grammar has not been told of.
        """

    def advance(self, sample: Sample) -> FinishReason | None: ...


@dataclass(slots=True)
class TextGrammar:
    """Plain text up to the end token or a cap. Bans apply from the second token on, as in the reference."""

    end_id: int
    max_tokens: int
    bans: tuple[int, ...] = ()
    repetition: TextRepetition | None = None
    tokens: list[int] = field(default_factory=list)
    mask: MaskKind = MaskKind.NONE

    def __post_init__(self) -> None:
        self.mask = MaskKind.CONSTANT if self.bans else MaskKind.NONE

    @property
    def max_samples(self) -> int:
        return self.max_tokens

    def demand(self, nth: int) -> Demand:
        return Demand.text(self.bans if nth > 1 else ())

    def advance(self, sample: Sample) -> FinishReason | None:
        token = sample[0]
        if token == self.end_id:
            return "stop"
        self.tokens.append(token)
        if self.repetition is not None and self.repetition.add(token):
            return "repetition"
        return "length" if len(self.tokens) >= self.max_tokens else None


@dataclass(slots=True)
class ReasoningGrammar:
    """Free text with coordinates in between, up to the answer token; then the answer, as plain text.

    The answer token is fed once: it ends the reasoning and opens the answer. At the cap it is forced.
    """

    ids: TokenConfig
    answer: TextGrammar
    max_tokens: int
    thoughts: list[int] = field(default_factory=list)
    coordinates: dict[int, int] = field(default_factory=dict)  # place in thoughts -> bin
    thinking: bool = True
    mask: MaskKind = MaskKind.GRAMMAR

    @property
    def max_samples(self) -> int:
        return self.max_tokens + 1 + self.answer.max_samples

    @property
    def tokens(self) -> list[int]:
        return self.thoughts + self.answer.tokens

    def demand(self, nth: int) -> Demand:
        if not self.thinking:
            return self.answer.demand(len(self.answer.tokens) + 1)
        if len(self.thoughts) >= self.max_tokens:
            return Demand(Want.NOTHING, self.ids.answer_id)
        banned = (self.ids.eos_id, self.ids.size_id) if self.thoughts else ()
        return Demand.text(banned, Want.TOKEN | Want.COORDINATE)

    def advance(self, sample: Sample) -> FinishReason | None:
        if not self.thinking:
            return self.answer.advance(sample)
        token, first, *_ = sample
        if token == self.ids.answer_id:
            self.thinking = False
            return None
        if token == self.ids.coord_id:
            self.coordinates[len(self.thoughts)] = first
        self.thoughts.append(token)
        return None


@dataclass(slots=True)
class Found:
    """One object as bins, with its scores. ``size`` is None for a point."""

    x: int
    y: int
    size: tuple[int, int] | None
    score_exist: float
    score_loc: float


@dataclass(slots=True)
class ObjectsGrammar:
    """Objects one after the other: decide, x, y and, for boxes, a size; then decide again.

    x is read from the same hidden state as the decision, so an object takes 2 samples (point) or 3 (detect).
    """

    ids: TokenConfig
    sized: bool
    max_objects: int
    repetition: PlaceRepetition | None = None
    found: list[Found] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    mask: MaskKind = MaskKind.GRAMMAR
    _parts: list[Sample] = field(default_factory=list)
    _cycle: tuple[Demand, ...] = ()
    _end: int = NOBODY

    def __post_init__(self) -> None:
        self._end = self.ids.eos_id
        y, size = Demand(Want.COORDINATE, self.ids.coord_id), Demand(Want.SIZE, self.ids.size_id)
        self._cycle = (Demand(Want.BOUNDARY), y, size)[: 3 if self.sized else 2]

    @property
    def max_samples(self) -> int:
        return self.max_objects * (3 if self.sized else 2)

    def demand(self, nth: int) -> Demand:
        return self._cycle[len(self._parts)]

    def advance(self, sample: Sample) -> FinishReason | None:
        parts, token = self._parts, sample[0]
        if not parts and token == self._end:
            return "stop"
        self.tokens.append(token)
        parts.append(sample)
        if len(parts) < len(self._cycle):
            return None
        self.found.append(_box(*parts) if self.sized else _point(*parts))
        parts.clear()
        if self.repetition is not None and (surplus := self.repetition.add(self.found[-1])):
            del self.found[-surplus:]
            return "repetition"
        return "max_objects" if len(self.found) >= self.max_objects else None


def _box(x: Sample, y: Sample, size: Sample) -> Found:
    _, x_bin, _, p_end, x_mass, _ = x
    _, width, height, _, width_mass, height_mass = size
    return Found(x_bin, y[1], (width, height), 1.0 - p_end, (x_mass * y[4] * width_mass * height_mass) ** 0.25)


def _point(x: Sample, y: Sample) -> Found:
    return Found(x[1], y[1], None, 1.0 - x[3], math.sqrt(x[4] * y[4]))
