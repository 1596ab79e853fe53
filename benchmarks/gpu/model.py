"""A Moondream of random weights, made on the device: the published size, or a small one where it is about running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import photon
from photon.models.config import MoondreamConfig, TokenConfig
from photon.models.load import LoadedModel
from photon.models.moondream import Moondream
from photon.models.tokenizer import Tokenizer
from photon.skills.grammar import ObjectsGrammar, Sample, TextGrammar

TINY = Path(photon.__file__).parent / "assets" / "tiny"
SMALL = {
    "vision": {
        "enc_dim": 32, "enc_n_layers": 1, "enc_ff_dim": 64, "enc_n_heads": 2, "proj_out_dim": 64, "proj_inner_dim": 64,
        "crop_size": 126, "overlap_margin": 2,
    },
    "text": {"dim": 64, "ff_dim": 128, "n_layers": 2, "vocab_size": 512, "n_heads": 2},
    "region": {
        "dim": 64, "coord_feat_dim": 32, "coord_out_dim": 1024, "size_feat_dim": 32, "size_out_dim": 2048,
        "inner_dim": 64,
    },
}  # fmt: skip
_NEVER = -1e4


def config(small: bool) -> MoondreamConfig:
    return MoondreamConfig.from_dict(SMALL) if small else MoondreamConfig()


def random_model(shape: MoondreamConfig, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """Uniform weights, norms of one. Texts and lists of objects never end by themselves, see ``ending_after``; ids
    beyond the tiny vocabulary are never chosen."""
    model, words = Moondream(shape), Tokenizer.load(TINY)
    tokens = MoondreamConfig.read(TINY / "config.json").tokens or TokenConfig()
    generator = torch.Generator(device).manual_seed(0)
    for name, tensor in model.state_dict().items():
        owner, _, leaf = name.rpartition(".")
        values = torch.empty(tensor.shape, device=device, dtype=dtype).uniform_(-0.03, 0.03, generator=generator)
        if "ln" in owner.rpartition(".")[2] and leaf == "weight":
            values.fill_(1.0)
        if name == "text.lm_head.bias":
            values[words.size :] = _NEVER
            values[tokens.eos_id] = _NEVER
        setattr(model.get_submodule(owner), leaf, torch.nn.Parameter(values, requires_grad=False))
    model.text.rope = model.text.rope.to(device)
    return LoadedModel(model, tokens, words, "random", meaningless=True)


@contextmanager
def ending_after(*, objects: int, tokens: int) -> Iterator[None]:
    """Lists end with so many objects and texts with so many tokens, by what was sampled next, as a real model's do: the
    engine learns of it at the commit. A cap it would know beforehand, and no step would be for nothing."""
    list_advance, text_advance = ObjectsGrammar.advance, TextGrammar.advance

    def advance_list(self: Any, sample: Sample) -> Any:
        return "stop" if len(self.found) >= objects else list_advance(self, sample)

    def advance_text(self: Any, sample: Sample) -> Any:
        return "stop" if len(self.tokens) >= tokens else text_advance(self, sample)

    with patch.object(ObjectsGrammar, "advance", advance_list), patch.object(TextGrammar, "advance", advance_text):
        yield
