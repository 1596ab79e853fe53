"""The layout that ``flat`` and ``triton_paged`` read, apart from both, since the one imports the other.

Does not lay anything out: that is the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

LARGEST_HEAD = 64
"""Largest head dim that the Triton kernels are written for."""


@dataclass(slots=True, eq=False)
class FlatLayout:
    """Where rows x width suffix tokens stand and what they may see. All tensors int64 on the model's device.

    ``positions`` [rows x width]: RoPE positions. ``targets`` [rows x width]: place in the pool (page x page size +
    offset) that a token's key and value go to; the scratch page for padding. ``offsets`` [rows, width]: place of a
    token in its row's own suffix, -1 for padding, which sees nothing and whose output is zeros. ``prefix_lengths``
    [rows]: 0 for rows without an image. ``prefix_pages`` [rows, n] and ``suffix_pages`` [rows, m]: page numbers, the
    scratch page where there are none. ``adapters`` [rows x width]: the slot of a token's adapter, 0 for none; None when
    no token has one.

    Token i of a row sees its row's whole prefix and its own suffix from 0 to ``offsets[i]``, so the tables must reach
    that far; they may be wider.
    """

    positions: Tensor
    targets: Tensor
    offsets: Tensor
    prefix_lengths: Tensor
    prefix_pages: Tensor
    suffix_pages: Tensor
    adapters: Tensor | None = None
