"""Prompt ids: the goldens' for the tiny vocabulary, the published ones for both token generations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import photon
from photon.core import Request
from photon.errors import RowError
from photon.models.config import TokenConfig
from photon.models.tokenizer import Tokenizer
from photon.skills.grammar import Demand, Want
from photon.skills.query import query_prompt
from photon.skills.registry import script_for
from photon.skills.skill import SkillContext
from tests.reference import IMAGES, QUESTION, TINY, outputs

IMAGE = photon.Image(b"never decoded here")


class Words:
    """A tokenizer that remembers what it was asked to encode."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.asked.append(text)
        return [1000]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))


def context(tokens: TokenConfig, tokenizer: Any) -> SkillContext:
    return SkillContext(tokens, tokenizer, [b / 1024 for b in range(1024)], [1.0] * 1024, stop_repetition=True)


def ids(tokens: TokenConfig, words: Any, skill: Any, prompt: str | None = None, **settings: Any) -> list[int]:
    return script_for(Request(0, IMAGE, skill, prompt, **settings), context(tokens, words)).prompt.ids


def test_goldens() -> None:
    from photon.models.config import MoondreamConfig

    config = MoondreamConfig.read(TINY / "config.json")
    assert config.tokens is not None
    tokenizer = Tokenizer.load(TINY)
    for name in IMAGES:
        runs = outputs()["images"][name]["runs"]
        for skill in ("detect", "point"):
            assert ids(config.tokens, tokenizer, skill, "cat") == runs[skill]["prompt_ids"]
        assert ids(config.tokens, tokenizer, "query", QUESTION) == runs["query"]["prompt_ids"]
        assert ids(config.tokens, tokenizer, "caption", length="short") == runs["caption_short"]["ids"]
    thinking = ids(config.tokens, tokenizer, "query", QUESTION, reasoning=True)
    assert thinking == outputs()["images"]["noise_160x200"]["runs"]["query_reasoning"]["prompt_ids"]


def test_current_generation() -> None:
    tokens, words = TokenConfig(), Words()
    assert ids(tokens, words, "query", "why?") == [1, 15381, 2, 1000, 3, 3]
    assert ids(tokens, words, "query", "why?", reasoning=True) == [1, 15381, 2, 1000, 3, 4]
    assert ids(tokens, words, "detect", "cat") == [1, 7235, 476, 2, 1000, 3]
    assert ids(tokens, words, "point", "cat") == [1, 2581, 2, 1000, 3]
    assert words.asked == ["why?", "why?", " cat", " cat"]
    assert ids(tokens, words, "caption", length="short") == [1, 32708, 2, 12492, 3]
    assert ids(tokens, words, "caption") == [1, 32708, 2, 6382, 3]
    assert ids(tokens, words, "caption", length="long") == [1, 32708, 2, 4059, 3]


def test_older_generation() -> None:
    tokens, words = TokenConfig.codegen(), Words()
    assert ids(tokens, words, "query", "why?") == [198, 198, 24361, 25, 1000, 198, 198, 33706, 25]
    assert ids(tokens, words, "detect", "cat") == [198, 198, 47504, 25, 1000, 628]
    assert ids(tokens, words, "point", "cat") == [198, 198, 12727, 25, 1000, 628]
    assert words.asked == [" why?", " cat", " cat"]
    assert ids(tokens, words, "caption", length="short") == [198, 198, 16438, 8305, 25]
    assert ids(tokens, words, "caption") == [198, 198, 24334, 1159, 25]
    assert ids(tokens, words, "caption", length="long") == [198, 198, 14617, 8305, 25]


def test_older_generation_has_no_answer_token_to_ban() -> None:
    script = script_for(Request(0, IMAGE, "caption"), context(TokenConfig.codegen(), Words()))
    assert script.grammar.demand(2) == Demand(Want.TOKEN)


@pytest.mark.parametrize("settings", [{"reasoning": True}, {"spatial_refs": [(0.5, 0.5)]}])
def test_older_generation_cannot_ground(settings: dict[str, Any]) -> None:
    with pytest.raises(RowError) as caught:
        ids(TokenConfig.codegen(), Words(), "query", "why?", **settings)
    assert caught.value.code == "SKILL_UNSUPPORTED"


def test_spatial_references() -> None:
    request = Request(0, IMAGE, "query", "why?", spatial_refs=[(0.25, 0.75), (0.1, 0.2, 0.6, 0.9)])
    prompt = query_prompt(request, context(TokenConfig(), Words()))
    assert prompt.ids == [1, 15381, 2, 5, 5, 5, 5, 6, 1000, 3, 3]
    assert prompt.coordinates == pytest.approx({3: 0.25, 4: 0.75, 5: 0.35, 6: 0.55})
    assert prompt.sizes[7] == pytest.approx((0.5, 0.7))


def test_a_query_without_an_image_starts_with_bos() -> None:
    request = Request(0, None, "query", "why?")
    assert query_prompt(request, context(TokenConfig(), Words())).ids == [0, 1, 15381, 2, 1000, 3, 3]


def test_a_skill_that_the_checkpoint_lacks() -> None:
    tokens = TokenConfig(templates={**TokenConfig().templates, "point": None})
    with pytest.raises(RowError, match="no prompt template for point"):
        ids(tokens, Words(), "point", "cat")
    short_only = TokenConfig(templates={"caption": {"short": [1, 3]}})
    with pytest.raises(RowError, match="no long captions; it has short"):
        ids(short_only, Words(), "caption", length="long")
