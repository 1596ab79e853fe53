"""Paged attention over a rectangle of rows in static shapes, and its reference in plain torch.

A ``StepLayout`` (``paged``) packs whole prefixes before the suffixes and groups the rows of one image, so its shapes
change with the rows. A ``FlatLayout`` holds rows x width suffix tokens and nothing else, whichever rows they are: what
a captured graph replays and what the kernels of ``triton_paged`` read. Width 1 is decode; a greater width is the
prefill of suffixes over prefixes that are already in the pool.

Does not compute prefixes, whose tokens see each other both ways: ``paged`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from photon.kernels.dense import working_dtype
from photon.kernels.flat_layout import LARGEST_HEAD, FlatLayout

__all__ = ["FlatLayout", "attend_flat", "attend_stored", "attention_reference", "in_place", "store"]

Attention: TypeAlias = Callable[[Tensor, Tensor, Tensor, FlatLayout], Tensor]


def attend_flat(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, layout: FlatLayout) -> Tensor:
    """Store this step's ``k`` and ``v`` [tokens, kv heads, dim] in one layer's pool, then attend.

    ``q``: [tokens, heads, dim]; ``keys``, ``values``: [kv heads, pages, page size, dim]. Returns [tokens, heads, dim].
    Triton's kernels do it on CUDA where Triton is installed and the head dim is at most ``LARGEST_HEAD``, the reference
    does otherwise.
    """
    store(k, v, keys, values, layout.targets)
    return attend_stored(q, keys, values, layout)


def attend_stored(q: Tensor, keys: Tensor, values: Tensor, layout: FlatLayout) -> Tensor:
    """``attend_flat`` for a step whose keys and values are in the pool already."""
    attention = _on_cuda() if in_place(q) else attention_reference
    rows, width = layout.offsets.shape
    return attention(q.view(rows, width, *q.shape[1:]), keys, values, layout).flatten(0, 1)


def in_place(q: Tensor) -> bool:
    """Whether there is a kernel that reads pages where they lie, for queries like ``q`` [tokens, heads, dim]."""
    return q.is_cuda and q.shape[-1] <= LARGEST_HEAD and _on_cuda() is not attention_reference


def store(k: Tensor, v: Tensor, keys: Tensor, values: Tensor, targets: Tensor) -> None:
    """Write ``k`` and ``v`` [tokens, kv heads, dim] to places ``targets`` [tokens] of one layer's pool."""
    for pool, fresh in ((keys, k), (values, v)):
        pool.view(pool.shape[0], -1, pool.shape[-1]).index_copy_(1, targets, fresh.transpose(0, 1))


def attention_reference(q: Tensor, keys: Tensor, values: Tensor, layout: FlatLayout) -> Tensor:
    """``q`` [rows, width, heads, dim] over what the layout lets each token see; same shape back.

    ``keys``, ``values``: [kv heads, pages, page size, dim], where this step's own are stored already. Every row's pages
    are gathered whole, so what nobody wrote must be finite: it is multiplied by a zero weight.
    """
    rows, width, heads, dim = q.shape
    kv_heads, dtype = keys.shape[0], q.dtype
    group = heads // kv_heads
    q = q.to(working_dtype(q))
    queries = (q * dim**-0.5).view(rows, width, kv_heads, group, dim).permute(2, 0, 3, 1, 4)
    queries = queries.reshape(kv_heads, rows, group * width, dim)

    pages = torch.cat((layout.prefix_pages, layout.suffix_pages), dim=1)
    k, v = (pool[:, pages].flatten(2, 3).to(q.dtype) for pool in (keys, values))  # [kv heads, rows, places, dim]
    visible = _visible(layout, keys.shape[2])[:, None].expand(-1, group, -1, -1).flatten(1, 2)
    scores = (queries @ k.transpose(-1, -2)).float().masked_fill(~visible, float("-inf"))
    mixed = scores.softmax(dim=-1).to(q.dtype) @ v
    mixed = mixed.view(kv_heads, rows, group, width, dim).permute(1, 3, 0, 2, 4)
    mixed = mixed.reshape(rows, width, heads, dim).to(dtype)
    return torch.where(layout.offsets[..., None, None] < 0, 0.0, mixed)


def _visible(layout: FlatLayout, page_size: int) -> Tensor:
    """[rows, width, places]: which places of the row's prefix pages, then of its suffix pages, a token sees."""
    offsets = layout.offsets[..., None]
    before = torch.arange(layout.prefix_pages.shape[1] * page_size, device=offsets.device)
    own = torch.arange(layout.suffix_pages.shape[1] * page_size, device=offsets.device)
    prefix = (before < layout.prefix_lengths[:, None, None]) & (offsets >= 0)
    return torch.cat((prefix, own <= offsets), dim=-1)


@cache
def _on_cuda() -> Attention:
    """Decided once a process, at the first step on CUDA."""
    try:
        from photon.kernels.triton_paged import paged_attention
    except ImportError:
        return attention_reference
    return paged_attention
