"""The model's own modules run for training: whole packed rows at once, with gradients.

Computes what the engine computes over pages (a test says so); only the way through the attention differs. Holds the
auxiliary dense head too, which is thrown away at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from photon.models.config import MoondreamConfig
from photon.models.moondream import Moondream
from photon.models.text import Block, rope_table, rotate
from training.scene import COLOURS, KINDS

POINTING = ((2, 0), (4, 0))
"""Layer and head of the attention that is told where to look."""
PATCH_OUTPUTS = len(KINDS) + 1 + len(COLOURS) + 4


def fresh_model(config: MoondreamConfig, seed: int) -> Moondream:
    """With parameters drawn from ``seed``, ready to train."""
    model = Moondream(config).to_empty(device="cpu")
    model.text.rope = rope_table(config.text)
    draw = torch.Generator().manual_seed(seed)
    depth = {"vision": config.vision.enc_n_layers, "text": config.text.n_layers}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif ".ln" in name or "post_ln" in name:
                parameter.fill_(1.0)
            elif name == "text.wte":
                parameter.normal_(0, 0.1, generator=draw)
            elif name == "vision.pos_emb":
                parameter.copy_(_grid_waves(config.vision.grid, parameter.shape[2]))
            elif name.endswith("_features"):
                parameter.copy_(_frequencies(parameter.shape, draw))
            else:
                std = parameter.shape[1] ** -0.5
                if ".blocks." in name and name.endswith(("attn.proj.weight", "fc2.weight")):
                    std /= math.sqrt(2 * depth[name.split(".")[0]])
                elif "lm_head" in name or "decoder.fc2" in name:
                    std *= 0.3
                parameter.normal_(0, std, generator=draw)
        for block in model.vision.blocks:  # patches look at those that are like them, in place and otherwise
            query, key, _ = block.attn.qkv.weight.chunk(3)  # type: ignore[union-attr, operator]
            key.add_(query).mul_(0.5**0.5)
    model.requires_grad_(True)
    model.region.coord_features.requires_grad_(False)
    model.region.size_features.requires_grad_(False)
    return model


def _frequencies(shape: torch.Size, draw: torch.Generator) -> Tensor:
    """From an eighth of a turn over the whole range to sixteen turns, as numbers that bfloat16 holds exactly."""
    steps = torch.linspace(-3, 4, shape[1])
    drawn = 2.0**steps * torch.randn(shape, generator=draw).sign()
    return drawn.to(torch.bfloat16).float()


def _grid_waves(grid: int, dim: int) -> Tensor:
    """Rows and columns of the grid as sines and cosines of falling frequency, [1, grid x grid, dim]."""
    rates = math.pi * 2.0 ** -torch.linspace(0, 4, dim // 4)
    at = torch.arange(grid)[:, None] * rates
    one = torch.cat((at.sin(), at.cos()), dim=1)
    rows, columns = one[:, None].expand(-1, grid, -1), one[None].expand(grid, -1, -1)
    return torch.cat((rows, columns), dim=-1).reshape(1, grid * grid, dim)


class DenseHead(nn.Module):
    """What stands in each patch, read off the image tokens: [B, patches, dim] to [B, 2, patches, PATCH_OUTPUTS], and
    [B, patches, 2], where in the picture its centre is, -2 to 2.

    ``mask``: which parts of a patch show a thing, read off the vision tower's features. ``place``: the centre and the
    sides of the thing under way, read off the text model's hidden states.
    """

    def __init__(self, dim: int, vision_dim: int, parts: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.linear = nn.Linear(dim, 2 * PATCH_OUTPUTS)
        self.centre = nn.Linear(dim, 2)
        self.place = nn.Linear(dim, 4)
        self.mask = nn.Linear(vision_dim, parts)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        normed = self.norm(tokens)
        return self.linear(normed).unflatten(-1, (2, PATCH_OUTPUTS)).transpose(1, 2), self.centre(normed)


@dataclass(slots=True)
class Seen:
    """``hidden`` [B, T, dim] before the last norm; ``looks``: for each of POINTING, the log of its attention to BOS
    and the patches [B, T, prefix]."""

    hidden: Tensor
    looks: list[Tensor]


def run_rows(
    model: Moondream, image_tokens: Tensor, x: Tensor, positions: Tensor, segments: Tensor, *, looks: bool = False
) -> Seen:
    """Packed rows of embeddings ``x`` [B, T, dim] behind the prefixes of their pictures."""
    text = model.text
    batch = len(positions)
    prefix = model.prefix(0, image_tokens).unflatten(0, (batch, -1))
    length = prefix.shape[1]
    mask = _mask(segments, length, x.dtype)
    rope_prefix = text.rope[:length].repeat(batch, 1, 1)
    rope_rows = text.rope[positions.flatten()]
    seen = Seen(x, [])
    last = len(text.blocks) - 1
    for layer, block in enumerate(text.blocks):
        assert isinstance(block, Block)
        z, q, k, v = _heads(block, prefix, rope_prefix)
        if layer < last:
            prefix = prefix + _mixed(block, q, k, v, None) + block.mlp(z)
        z, q, own_k, own_v = _heads(block, x, rope_rows)
        k, v = torch.cat((k, own_k), dim=2), torch.cat((v, own_v), dim=2)
        if looks:
            for head in (head for at, head in POINTING if at == layer):
                scores = q[:, head] @ k[:, head].transpose(1, 2) / math.sqrt(q.shape[-1]) + mask[:, 0]
                seen.looks.append(scores.log_softmax(dim=-1)[..., :length])
        x = x + _mixed(block, q, k, v, mask) + block.mlp(z)
    seen.hidden = x
    return seen


def _mask(segments: Tensor, prefix: int, dtype: torch.dtype) -> Tensor:
    """Added to the scores [B, 1, T, prefix + T]: all of the prefix, and of one's own segment what came before."""
    batch, width = segments.shape
    same = segments[:, :, None] == segments[:, None, :]
    before = torch.ones(width, width, dtype=torch.bool, device=segments.device).tril()
    mask = torch.zeros(batch, 1, width, prefix + width, dtype=dtype, device=segments.device)
    mask[:, 0, :, prefix:].masked_fill_(~(same & before), float("-inf"))
    return mask


def _heads(block: Block, x: Tensor, rope: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normed input, and queries, keys and values [B, heads, T, head dim]."""
    c = block.attn.config
    batch, width, _ = x.shape
    z = block.ln(x)
    heads = block.attn.qkv(z).view(batch * width, -1, c.head_dim)
    q, k, v = heads.split((c.n_heads, c.kv_heads, c.kv_heads), dim=1)
    parts = (rotate(q, rope), rotate(k, rope), v)
    q, k, v = (part.unflatten(0, (batch, width)).transpose(1, 2) for part in parts)
    return z, q, k, v


def _mixed(block: Block, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    grouped = q.shape[1] != k.shape[1]
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)
    return block.attn.proj(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]
