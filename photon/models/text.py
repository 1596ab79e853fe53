"""The text model: parallel attention and MLP blocks over tokens packed from many sequences.

Which tokens see which is the step layout's affair (``kernels.paged``); sampling is the engine's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from photon.kernels.paged import KVPool, Layout, attend
from photon.models.config import TextConfig
from photon.models.layers import MLP, layer_norm, linear, parameter
from photon.models.lora import Deltas, LayerDeltas

ROPE_THETA = 10_000.0


def rope_table(config: TextConfig) -> Tensor:
    """Cosines and sines, float32 [context, 2, rotary_dim / 2]; frequency j is theta^(-2j / rotary_dim)."""
    half = config.rotary_dim // 2
    frequencies = 1.0 / ROPE_THETA ** (torch.arange(half, dtype=torch.float32) * 2 / config.rotary_dim)
    angles = torch.arange(config.max_context, dtype=torch.float32)[:, None] * frequencies
    return torch.stack((angles.cos(), angles.sin()), dim=1)


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """RoPE on the first half of each head of ``x`` [tokens, heads, dim] with ``table`` [tokens, 2, dim / 4].

    Pairs are read half-split and written interleaved, as the checkpoints were trained; float32 inside.
    """
    cos, sin = table[:, None, 0], table[:, None, 1]
    half = table.shape[-1]
    a, b = x[..., :half].float(), x[..., half : 2 * half].float()
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    return torch.cat((turned.to(x.dtype), x[..., 2 * half :]), dim=-1)


class Attention(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.qkv = linear(config.dim, (config.n_heads + 2 * config.kv_heads) * config.head_dim)
        self.proj = linear(config.dim, config.dim)

    def forward(
        self, x: Tensor, rope: Tensor, keys: Tensor, values: Tensor, layout: Layout, deltas: LayerDeltas | None
    ) -> Tensor:
        c = self.config
        heads = self.qkv(x) if deltas is None else self.qkv(x) + deltas("attn.qkv", x)
        q, k, v = heads.view(x.shape[0], -1, c.head_dim).split((c.n_heads, c.kv_heads, c.kv_heads), dim=1)
        mixed = attend(rotate(q, rope), rotate(k, rope), v, keys, values, layout).flatten(1)
        out: Tensor = self.proj(mixed)
        return out if deltas is None else out + deltas.proj(x, mixed)


class Block(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.ln = layer_norm(config.dim)
        self.attn = Attention(config)
        self.mlp = MLP(config.dim, config.ff_dim, config.dim)

    def forward(
        self, x: Tensor, rope: Tensor, keys: Tensor, values: Tensor, layout: Layout, deltas: LayerDeltas | None
    ) -> Tensor:
        z = self.ln(x)
        return x + self.attn(z, rope, keys, values, layout, deltas) + self.mlp(z, deltas)  # type: ignore[no-any-return]


class TextModel(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = parameter(config.vocab_size, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.post_ln = layer_norm(config.dim)
        self.lm_head = linear(config.dim, config.vocab_size)
        self.rope: Tensor
        self.register_buffer("rope", rope_table(config), persistent=False)

    def forward(self, x: Tensor, pool: KVPool, layout: Layout, deltas: Deltas | None = None) -> Tensor:
        """Embeddings [tokens, dim] to hidden states before the last norm; keys and values go into the pool.

        ``deltas``: what the tokens' adapters add, None where no token has one.
        """
        rope = self.rope[layout.positions]
        for n, (block, keys, values) in enumerate(zip(self.blocks, pool.keys, pool.values, strict=True)):
            x = block(x, rope, keys, values, layout, None if deltas is None else deltas.layer(n))
        return x

    def logits(self, hidden: Tensor, of: Tensor | None = None) -> Tensor:
        """Hidden states [n, dim] to logits [n, vocabulary] in the model's precision; [n, m] ``of`` m ids in float32."""
        normed = self.post_ln(hidden)
        if of is None:
            return self.lm_head(normed)  # type: ignore[no-any-return]
        return F.linear(normed.float(), self.lm_head.weight[of].float(), self.lm_head.bias[of].float())
