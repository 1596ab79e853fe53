"""The vocabulary of the model in the box: byte-level BPE over the phrases that questions and answers are made of.

Ids 0 to 9 have the roles that they have in the published model. Building it twice gives the same file.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from photon.models.tokenizer import Tokenizer as Words
from training.questions import NAMES, all_phrases
from training.scene import COLOURS
from training.shape import VOCABULARY

SPECIAL = (
    *("<|endoftext|>", "<|md_reserved_0|>", "<|md_reserved_1|>", "<|md_reserved_2|>", "<|md_reserved_3|>"),
    *("<|coord|>", "<|size|>", "<|start_ground_points|>", "<|md_reserved_7|>", "<|end_ground|>"),
)
WORDS = ("detect", "point", "query", "caption", "short", "normal", "long")
"""Those of the templates, each one token."""
ANSWERS = (*COLOURS, "yes", "no")
_EMPHASIS = 100  # how often these are repeated, so that each gets a token of its own


def build() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return tokenizer


def _corpus() -> Iterator[str]:
    """A name to detect or point at has a space in front of it, other texts have none."""
    yield from all_phrases()
    yield from (f" {name.text}" for name in NAMES)
    for word in WORDS + ANSWERS:
        yield from (word,) * _EMPHASIS


@functools.cache
def words() -> Words:
    """As the engine loads it."""
    with tempfile.TemporaryDirectory() as folder:
        build().save(str(Path(folder, "tokenizer.json")))
        return Words.load(Path(folder))


def token_section() -> dict[str, Any]:
    """The config's ``tokenizer`` section: ids and templates."""
    tokenizer = words()

    def word(text: str) -> int:
        (id_,) = tokenizer.encode(text)
        return id_

    templates: dict[str, dict[str, list[int]]] = {
        "caption": {length: [1, word("caption"), 2, word(length), 3] for length in ("short", "normal", "long")}
    }
    for skill in ("query", "detect", "point"):
        templates[skill] = {"prefix": [1, word(skill), 2], "suffix": [3]}
    return {
        "bos_id": 0,
        "eos_id": 0,
        "answer_id": 3,
        "thinking_id": 4,
        "coord_id": 5,
        "size_id": 6,
        "start_ground_points_id": 7,
        "end_ground_id": 9,
        "templates": templates,
    }
