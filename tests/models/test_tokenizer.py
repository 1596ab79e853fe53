from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE

from photon.errors import UsageError
from photon.models.config import TokenConfig
from photon.models.tokenizer import Tokenizer, resolve_tokens
from tests.reference import TINY


def gpt2_like() -> Tokenizer:
    """A vocabulary whose end-of-text token stands where the older generation has it."""
    vocab = {f"t{i}": i for i in range(50256)}
    backend = Backend(BPE(vocab=vocab | {"<|endoftext|>": 50256}, merges=[]))
    return Tokenizer(backend)


def test_encodes_raw_and_decodes_back() -> None:
    tokenizer = Tokenizer.load(TINY)
    assert tokenizer.encode("what is this?") == [414, 292, 404, 40]
    assert tokenizer.decode([414, 292, 404, 40]) == "what is this?"
    assert tokenizer.id_of("<|endoftext|>") == 0
    assert tokenizer.encode("") == []


def test_a_post_processor_adds_nothing(tmp_path: Path) -> None:
    raw = json.loads((TINY / "tokenizer.json").read_text())
    raw["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
    assert Tokenizer.load(tmp_path).encode("what is this?") == [414, 292, 404, 40]


def test_a_config_without_ids_takes_those_of_the_vocabulary() -> None:
    assert resolve_tokens(None, Tokenizer.load(TINY), "here") == TokenConfig()
    assert resolve_tokens(None, gpt2_like(), "here") == TokenConfig.codegen()


def test_config_and_vocabulary_of_different_generations() -> None:
    with pytest.raises(UsageError, match=r"here: the model ends a text with id 0, but .* is 50256"):
        resolve_tokens(TokenConfig(), gpt2_like(), "here")


def test_missing_and_broken_vocabularies(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no tokenizer\.json.*moondream/starmie-v1"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="cannot be read"):
        Tokenizer.load(tmp_path)
