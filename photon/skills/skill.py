"""What a skill is: from a request to a prompt and a grammar, and from a finished grammar to an answer.

``Script`` is one request's copy of all three. The skills themselves are the neighbouring files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from photon.core import Request
from photon.errors import RowError
from photon.models.config import Template, TokenConfig
from photon.models.tokenizer import Tokenizer
from photon.skills.grammar import Grammar
from photon.skills.repetition import PlaceRepetition, TextRepetition

Decision = Literal["masked", "reference"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Input positions after the image: ``ids``, and for some places a region value instead of the id's embedding.

    ``coordinates``: place -> value in [0, 1]; ``sizes``: place -> (width, height).
    """

    ids: list[int]
    coordinates: dict[int, float]
    sizes: dict[int, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Script:
    """``parse`` turns the finished grammar into the fields of a ``Result`` that are the skill's own."""

    prompt: Prompt
    grammar: Grammar
    parse: Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SkillContext:
    """What all scripts of one engine share. ``coordinates`` and ``sizes`` hold the float32 value of every bin."""

    tokens: TokenConfig
    tokenizer: Tokenizer
    coordinates: list[float]
    sizes: list[float]
    stop_repetition: bool

    def template(self, skill: str) -> Template:
        """Raises ``RowError`` SKILL_UNSUPPORTED when this checkpoint was not trained for the skill."""
        template = self.tokens.templates.get(skill)
        if not template:
            raise RowError("SKILL_UNSUPPORTED", f"this model has no prompt template for {skill}")
        return template

    def box(self, x: int, y: int, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Bins to (x_min, y_min, x_max, y_max): centre plus and minus half the size, not clamped."""
        centre_x, centre_y = self.coordinates[x], self.coordinates[y]
        width, height = self.sizes[size[0]], self.sizes[size[1]]
        return (centre_x - width / 2, centre_y - height / 2, centre_x + width / 2, centre_y + height / 2)

    def text_repetition(self) -> TextRepetition | None:
        return TextRepetition() if self.stop_repetition else None

    def place_repetition(self) -> PlaceRepetition | None:
        return PlaceRepetition(self.box) if self.stop_repetition else None


def object_prompt(request: Request, context: SkillContext) -> Prompt:
    """Template prefix, a space and the object's name, template suffix."""
    template = context.template(request.skill)
    ids = template["prefix"] + context.tokenizer.encode(" " + request.prompt) + template["suffix"]
    return Prompt(ids, {}, {})
