"""Attention over a paged key/value pool, in plain torch: the reference that any other kernel must equal.

A step's tokens come in two kinds. First whole image prefixes, whose tokens see each other both ways and nothing else.
Then a rectangle of rows x width suffix tokens; each sees the whole prefix of its row (if it has one) and its own
row's suffix up to itself. Rows of one image form a group, and a group's prefix is read once for all its rows.

Does not decide who owns which page: that is the engine's ``pages``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from photon.kernels.dense import attention, working_dtype
from photon.kernels.flat import FlatLayout, attend_flat, attend_stored, in_place, store


@dataclass(frozen=True, slots=True, eq=False)
class KVPool:
    """Keys and values of all layers, [layers, kv heads, pages, page size, head dim]. Keys are stored after RoPE.

    Heads come first so that what is gathered by page is already one matrix a head, and is not copied once more.
    Both start as zeros: a never-written position may be multiplied by a zero weight, and 0 x NaN is NaN.
    """

    keys: Tensor
    values: Tensor

    @property
    def page_size(self) -> int:
        return self.keys.shape[3]


@dataclass(slots=True, eq=False)
class StepLayout:
    """Where the tokens of one step stand and what they may see. All tensors int64 on the model's device.

    ``positions`` [tokens]: RoPE positions. ``targets`` [tokens]: place in the pool (page x page size + offset) that a
    token's key and value go to. ``offsets`` [rows, width]: place of a suffix token in its row's own suffix.
    ``suffix_pages`` [rows, n]: the row's own pages; None: a lone row owns the whole pool, in order, and reads it in
    place. ``prefix_pages`` [groups, n]: the pages of each group's prefix.
    ``members`` [groups, m]: the rows of a group, padded with any row. ``seats`` [rows]: a row's place in ``members``.
    ``has_prefix`` [rows]: 0 for rows without an image, which may sit in any group; None when all have one.
    ``adapters`` [tokens]: the slot of a token's adapter, 0 for none; None when no token has one. ``flat``: see
    ``flat_of``.
    """

    prefixes: int
    prefix_len: int
    positions: Tensor
    targets: Tensor
    offsets: Tensor
    suffix_pages: Tensor | None
    prefix_pages: Tensor
    members: Tensor
    seats: Tensor
    has_prefix: Tensor | None = None
    adapters: Tensor | None = None
    flat: FlatLayout | None = None

    @property
    def prefix_tokens(self) -> int:
        return self.prefixes * self.prefix_len


Layout: TypeAlias = StepLayout | FlatLayout


def attend(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, layout: Layout) -> Tensor:
    """Store this step's ``k`` and ``v`` [tokens, kv heads, dim] in one layer's pool, then attend.

    ``q``: [tokens, heads, dim]; ``keys``, ``values``: [kv heads, pages, page size, dim]. Returns [tokens, heads, dim].
    """
    if isinstance(layout, FlatLayout):
        return attend_flat(q, k, v, keys, values, layout)
    store(k, v, keys, values, layout.targets)
    split = layout.prefix_tokens
    parts = []
    if split:
        parts.append(_within_prefixes(q[:split], k[:split], v[:split], layout.prefixes))
    if layout.offsets.shape[-1] > 1 and layout.suffix_pages is not None and in_place(q):
        parts.append(attend_stored(q[split:], keys, values, flat_of(layout)))
    elif layout.offsets.numel():
        parts.append(_suffixes(q[split:], keys, values, layout))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def flat_of(layout: StepLayout) -> FlatLayout:
    """The step's suffixes with a table of pages for each row. Made once a step, not in each layer.

    Padding stays what it is in the step: it reads what its row's first token reads.
    """
    if layout.flat is None:
        assert layout.suffix_pages is not None
        rows = layout.offsets.shape[0]
        if layout.prefix_pages.shape[0]:
            pages = layout.prefix_pages[layout.seats // layout.members.shape[1]]
            lengths = torch.full_like(layout.seats, layout.prefix_len)
            if layout.has_prefix is not None:
                lengths = lengths * (layout.has_prefix != 0)
        else:
            pages, lengths = (layout.offsets.new_zeros(shape) for shape in ((rows, 1), (rows,)))
        after = slice(layout.prefix_tokens, None)
        layout.flat = FlatLayout(
            positions=layout.positions[after],
            targets=layout.targets[after],
            offsets=layout.offsets,
            prefix_lengths=lengths,
            prefix_pages=pages,
            suffix_pages=layout.suffix_pages,
            adapters=None if layout.adapters is None else layout.adapters[after],
        )
    return layout.flat


def _within_prefixes(q: Tensor, k: Tensor, v: Tensor, prefixes: int) -> Tensor:
    def per_head(x: Tensor) -> Tensor:
        return x.view(prefixes, -1, *x.shape[1:]).transpose(1, 2)

    mixed = attention(per_head(q), per_head(k), per_head(v))
    return mixed.transpose(1, 2).flatten(0, 1)


def _suffixes(q: Tensor, keys: Tensor, values: Tensor, layout: StepLayout) -> Tensor:
    """Scores over prefix and suffix are taken apart, so that a group shares its prefix, and normalised together.

    Inside, heads come before rows, as in the pool.
    """
    rows, width = layout.offsets.shape
    heads, dim = q.shape[1:]
    kv_heads, dtype = keys.shape[0], q.dtype
    q = q.to(working_dtype(q))
    q = (q * dim**-0.5).view(rows, width, kv_heads, heads // kv_heads, dim).permute(2, 0, 3, 1, 4)
    q = q.reshape(kv_heads, rows, -1, dim)  # [kv heads, rows, queries, dim]; queries = heads per kv head x width

    own_k, own_v = (_gather(pool, layout.suffix_pages).to(q.dtype) for pool in (keys, values))
    scores = q @ own_k.transpose(-1, -2)
    hidden = torch.arange(scores.shape[-1], device=q.device) > layout.offsets[..., None]  # [rows, width, suffix]
    hidden = hidden[:, None].expand(-1, heads // kv_heads, -1, -1).flatten(1, 2)
    scores = scores.float().masked_fill(hidden, float("-inf"))

    if layout.prefix_pages.shape[0]:
        shared_k, shared_v = (
            _gather(pool, layout.prefix_pages)[:, :, : layout.prefix_len].to(q.dtype) for pool in (keys, values)
        )
        before = _by_row(_by_group(q, layout) @ shared_k.transpose(-1, -2), layout).float()
        if layout.has_prefix is not None:
            before = before.masked_fill(layout.has_prefix[:, None, None] == 0, float("-inf"))
        weights = torch.cat((before, scores), dim=-1).softmax(dim=-1).to(q.dtype)
        mixed = weights[..., layout.prefix_len :] @ own_v
        mixed = mixed + _by_row(_by_group(weights[..., : layout.prefix_len], layout) @ shared_v, layout)
    else:
        mixed = scores.softmax(dim=-1).to(q.dtype) @ own_v
    mixed = mixed.view(kv_heads, rows, heads // kv_heads, width, dim).permute(1, 3, 0, 2, 4)
    return mixed.reshape(rows * width, heads, dim).to(dtype)


def _gather(pool: Tensor, pages: Tensor | None) -> Tensor:
    """[kv heads, pages, page size, dim] at ``pages`` [n, m], or all in place, to [kv heads, n, m x page size, dim]."""
    return pool[:, pages].flatten(2, 3)


def _by_group(x: Tensor, layout: StepLayout) -> Tensor:
    """[kv heads, rows, queries, ...] to [kv heads, groups, members x queries, ...]."""
    return x[:, layout.members].flatten(2, 3)


def _by_row(x: Tensor, layout: StepLayout) -> Tensor:
    """The inverse of ``_by_group``: padding falls away."""
    groups, per_group = layout.members.shape
    return x.view(x.shape[0], groups * per_group, -1, x.shape[-1])[:, layout.seats]
