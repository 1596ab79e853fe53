from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from photon.errors import UsageError
from photon.models.config import MoondreamConfig, TokenConfig
from tests.reference import TINY


def tiny(**changes: Any) -> dict[str, Any]:
    raw = json.loads((TINY / "config.json").read_text())
    for key, value in changes.items():
        section, _, name = key.partition("__")
        raw[section][name] = value
    return raw


def test_the_published_2b_model_is_the_default() -> None:
    config = MoondreamConfig.from_dict({})
    assert (config.text.dim, config.text.n_layers, config.text.kv_heads, config.text.head_dim) == (2048, 24, 32, 64)
    assert (config.vision.grid, config.vision.window, config.vision.margin) == (27, 266, 112)
    assert config.prefix_len == 730
    assert config.tokens is None  # the vocabulary tells the generation


def test_key_value_heads_follow_the_heads_where_a_file_leaves_them_out() -> None:
    small = {
        "text": {"dim": 1024, "ff_dim": 4096, "n_heads": 16},
        "vision": {"proj_out_dim": 1024},
        "region": {"dim": 1024},
    }
    assert MoondreamConfig.from_dict(small).text.kv_heads == 16


def test_prefix_follows_the_grid() -> None:
    raw = tiny(vision__crop_size=112, text__prefix_attn=65)
    raw["vision"]["overlap_margin"] = 2
    assert MoondreamConfig.from_dict(raw).prefix_len == 65


def test_hub_layout(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "moondream1", "config": tiny()}))
    assert MoondreamConfig.read(path) == MoondreamConfig.from_dict(tiny())


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (tiny(text__n_head=3), "text.n_head is not a Moondream 2 setting; did you mean 'n_heads'"),
        (tiny(text__prefix_attn=731), "prefix_attn is 731, but the vision grid makes prefixes of 730"),
        (tiny(region__dim=64), "region.dim must equal text.dim"),
        (tiny(text__moe={"num_experts": 64}), "Moondream 3"),
        (tiny(vision__crop_size=380), "multiple of enc_patch_size"),
        (tiny(text__dim="48"), "text.dim must be an integer of at least 1, not '48'"),
        (tiny(text__n_heads=0), "text.n_heads must be an integer of at least 1, not 0"),
        (tiny(text__n_layers=-1), "text.n_layers must be an integer of at least 1"),
        (tiny(vision__max_crops=True), "vision.max_crops must be an integer of at least 1, not True"),
        ({"text": [1]}, r"text must be a mapping, not \[1\]"),
        (tiny(tokenizer__templates=None), "tokenizer.templates must map skills to templates"),
        (tiny(tokenizer__templates={"detect": {"prefix": [1]}}), "templates.detect must hold lists of ids"),
        (tiny(tokenizer__templates={"caption": "short"}), "templates.caption must hold lists of ids"),
        (tiny(tokenizer__answer_id="3"), "tokenizer.answer_id must be an integer of at least 0, not '3'"),
        (tiny(tokenizer__coord_id=512), "tokenizer names the id 512, but text.vocab_size is 512"),
    ],
)
def test_wrong_configurations(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MoondreamConfig.from_dict(raw, "config.json")


def test_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(UsageError, match="no such file"):
        MoondreamConfig.read(path)
    path.write_text("{")
    with pytest.raises(UsageError, match="not readable as JSON"):
        MoondreamConfig.read(path)


def test_generations_are_told_apart_by_their_templates() -> None:
    assert TokenConfig().grounded
    assert not TokenConfig.codegen().grounded
