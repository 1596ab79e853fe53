"""Matrix products and attention that a CPU without bfloat16 arithmetic takes through float32.

Such a CPU multiplies large bfloat16 matrices several times slower than it converts them and multiplies floats; for a
few rows, reading half the bytes wins. Either way sums are float32 and results are rounded to bfloat16 once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# From how many rows on the float32 route wins (measured, see docs/lab-log.md): early where a float32 copy of the matrix
# stays in the caches, late where it goes through memory.
_CACHED_WEIGHTS = 1 << 21
_MANY_ROWS, _MANY_ROWS_CACHED = 32, 4
_NATIVE_BFLOAT16 = ("AVX512", "AMX", "SVE")


def _through_float32(x: Tensor) -> bool:
    if x.dtype != torch.bfloat16 or x.device.type != "cpu":
        return False
    return not torch.backends.cpu.get_cpu_capability().startswith(_NATIVE_BFLOAT16)


def working_dtype(x: Tensor) -> torch.dtype:
    """What to compute in where operands are small or made for the purpose: float32 where bfloat16 is slow."""
    return torch.float32 if _through_float32(x) else x.dtype


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x`` [..., in] times ``weight`` [out, in], as ``F.linear``."""
    many = _MANY_ROWS_CACHED if weight.numel() <= _CACHED_WEIGHTS else _MANY_ROWS
    if x.numel() < many * x.shape[-1] or not _through_float32(x):
        return F.linear(x, weight, bias)
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float()).to(x.dtype)


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Full softmax attention: ``q`` [n, heads, tokens, dim], ``k`` and ``v`` [n, kv heads, tokens, dim]."""
    grouped = q.shape[1] != k.shape[1]
    if not _through_float32(q):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=grouped)
    mixed = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), enable_gqa=grouped)
    return mixed.to(q.dtype)
