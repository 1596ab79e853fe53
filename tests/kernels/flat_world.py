"""Rows over shared prefixes on scattered pages, with what each token must see written out plainly."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from photon.kernels.flat import FlatLayout, store

NO_PREFIX = -1
SCRATCH = 0


@dataclass(frozen=True)
class Row:
    """``length`` own tokens over prefix number ``prefix``; the last ``new`` of them are the step's."""

    length: int
    new: int = 1
    prefix: int = NO_PREFIX


@dataclass(frozen=True)
class Shape:
    heads: int = 2
    kv_heads: int = 2
    dim: int = 16
    page_size: int = 16
    dtype: torch.dtype = torch.float32


class World:
    """``keys`` and ``values`` hold what came before the step, and ``junk`` wherever nobody wrote. ``q``, ``k``, ``v``
    [tokens, heads, dim] are the step's tokens; ``spare``: columns of the page tables that no row needs."""

    def __init__(
        self,
        rows: list[Row],
        prefixes: list[int],
        shape: Shape,
        *,
        width: int | None = None,
        spare: int = 0,
        junk: float = 1e4,
        seed: int = 0,
    ) -> None:
        self.rows, self.shape, self._spare = rows, shape, spare
        self._random = torch.Generator().manual_seed(seed)
        self.width = width or max(row.new for row in rows)
        needed = sum(self._pages(n) for n in [*prefixes, *(row.length for row in rows)])
        self._free = iter((1 + torch.randperm(needed, generator=self._random)).tolist())
        pool = (shape.kv_heads, needed + 1, shape.page_size, shape.dim)
        self.keys, self.values = (torch.full(pool, junk, dtype=shape.dtype) for _ in range(2))
        for pool_of_scratch in (self.keys, self.values):  # padding has been written there
            pool_of_scratch[:, SCRATCH] = pool_of_scratch[:, SCRATCH].nan_to_num(1e3)
        tokens = len(rows) * self.width
        self.q, self.k, self.v = (self._draw(tokens, n) for n in (shape.heads, shape.kv_heads, shape.kv_heads))
        shared = [self._sequence(n) for n in prefixes]
        own = [self._sequence(row.length) for row in rows]
        for (pages, *kv), n in zip(shared, prefixes, strict=True):
            self._write(pages, kv, n)
        for (pages, *kv), row in zip(own, rows, strict=True):
            self._write(pages, kv, row.length - row.new)
        self._shared, self._own = shared, own
        self.layout = self._layout(prefixes)

    def stored(self) -> World:
        store(self.k, self.v, self.keys, self.values, self.layout.targets)
        return self

    def queries(self) -> Tensor:
        """``q`` [rows, width, heads, dim]."""
        return self.q.view(len(self.rows), self.width, *self.q.shape[1:])

    def expected(self) -> Tensor:
        """Softmax attention in float64, one token and head at a time: [rows, width, heads, dim]."""
        out = torch.zeros(self.queries().shape, dtype=torch.float64)
        share = self.shape.heads // self.shape.kv_heads
        for i, row in enumerate(self.rows):
            _, own_k, own_v = self._own[i]
            for column in range(row.new):
                seen = row.length - row.new + column + 1
                k, v = own_k[:seen], own_v[:seen]
                if row.prefix != NO_PREFIX:
                    _, shared_k, shared_v = self._shared[row.prefix]
                    k, v = torch.cat((shared_k, k)), torch.cat((shared_v, v))
                for head in range(self.shape.heads):
                    scores = k[:, head // share].double() @ self.queries()[i, column, head].double()
                    weights = (scores / self.shape.dim**0.5).softmax(0)
                    out[i, column, head] = weights @ v[:, head // share].double()
        return out

    def _draw(self, tokens: int, heads: int) -> Tensor:
        return torch.randn(tokens, heads, self.shape.dim, generator=self._random).to(self.shape.dtype)

    def _pages(self, length: int) -> int:
        return -(-length // self.shape.page_size)

    def _sequence(self, length: int) -> tuple[list[int], Tensor, Tensor]:
        pages = [next(self._free) for _ in range(self._pages(length))]
        return pages, self._draw(length, self.shape.kv_heads), self._draw(length, self.shape.kv_heads)

    def _write(self, pages: list[int], kv: list[Tensor], count: int) -> None:
        for pool, fresh in zip((self.keys, self.values), kv, strict=True):
            for at in range(count):
                nth, within = divmod(at, self.shape.page_size)
                pool[:, pages[nth], within] = fresh[at]

    def _table(self, pages: list[list[int]]) -> Tensor:
        columns = max(map(len, pages), default=0) + self._spare
        return torch.tensor([row + [SCRATCH] * (columns - len(row)) for row in pages], dtype=torch.int64)

    def _layout(self, prefixes: list[int]) -> FlatLayout:
        offsets = torch.full((len(self.rows), self.width), -1)
        targets = torch.full_like(offsets, SCRATCH)
        positions = torch.zeros_like(offsets)
        step_k, step_v = (x.view(*offsets.shape, *x.shape[1:]) for x in (self.k, self.v))
        lengths = [0 if row.prefix == NO_PREFIX else prefixes[row.prefix] for row in self.rows]
        for i, row in enumerate(self.rows):
            pages, own_k, own_v = self._own[i]
            for column, at in enumerate(range(row.length - row.new, row.length)):
                nth, within = divmod(at, self.shape.page_size)
                offsets[i, column], positions[i, column] = at, lengths[i] + at
                targets[i, column] = pages[nth] * self.shape.page_size + within
                step_k[i, column], step_v[i, column] = own_k[at], own_v[at]
        return FlatLayout(
            positions=positions.flatten(),
            targets=targets.flatten(),
            offsets=offsets,
            prefix_lengths=torch.tensor(lengths),
            prefix_pages=self._table([[] if r.prefix == NO_PREFIX else self._shared[r.prefix][0] for r in self.rows]),
            suffix_pages=self._table([own[0] for own in self._own]),
        )
