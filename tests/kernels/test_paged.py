"""Paged attention against dense attention, written out token by token."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from photon.device.threads import ThreadDevice
from photon.engine.layout import decode_layout, prefill_layout
from photon.engine.rows import NO_PREFIX, RowTable
from photon.engine.slots import Arena, upload
from photon.kernels.paged import KVPool, StepLayout, attend

PAGE, DIM = 4, 8


def dense(q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """One query [heads, dim] over keys and values, each [kv heads, dim]."""
    k, v = torch.stack(keys), torch.stack(values)
    share = q.shape[0] // k.shape[1]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    weights = torch.einsum("hd,shd->hs", q, k).mul(DIM**-0.5).softmax(-1)
    return torch.einsum("hs,shd->hd", weights, v)


class World:
    """Random sequences over shared prefixes, with the dense history of each beside the paged pool."""

    def __init__(self, seed: int, prefix_len: int, owners: list[int], heads: int, kv_heads: int) -> None:
        """``owners``: each row's prefix, or NO_PREFIX."""
        self.random = torch.Generator().manual_seed(seed)
        self.prefix_len, self.owners, self.heads, self.kv_heads = prefix_len, owners, heads, kv_heads
        n_prefix, count = -(-prefix_len // PAGE), max(owners) + 1
        device = ThreadDevice()
        self.table = RowTable(len(owners), max(count, 1), 6, n_prefix, device)
        pages = iter(torch.randperm(200, generator=self.random).add(1).tolist())
        self.prefixes = [self.table.acquire_prefix([next(pages) for _ in range(n_prefix)]) for _ in range(count)]
        self.rows = np.array(
            [
                self.table.acquire_row(
                    base=0 if owner == NO_PREFIX else prefix_len,
                    prefix=NO_PREFIX if owner == NO_PREFIX else self.prefixes[owner],
                    pages=[next(pages) for _ in range(6)],
                )
                for owner in owners
            ]
        )
        self.pool = KVPool(*torch.zeros(2, 1, kv_heads, 201, PAGE, DIM))
        self.shared: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in range(count)]
        self.own: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in owners]
        self.arena = Arena(device, 4096, torch.int64)
        device.close()

    def tokens(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        def random(heads: int) -> Tensor:
            return torch.randn(n, heads, DIM, generator=self.random)

        return random(self.heads), random(self.kv_heads), random(self.kv_heads)

    def run(self, layout: StepLayout, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        upload(self.arena).run()
        return attend(q, k, v, self.pool.keys[0], self.pool.values[0], layout)

    def expected(self, row: int, q: Tensor) -> Tensor:
        owner = self.owners[row]
        before = self.shared[owner] if owner != NO_PREFIX else ([], [])
        return dense(q, before[0] + self.own[row][0], before[1] + self.own[row][1])

    def prefill(self, lengths: list[int]) -> None:
        self.arena.clear()
        layout = prefill_layout(
            self.arena, self.table, self.prefixes, self.rows, np.array(lengths),
            prefix_len=self.prefix_len, page_size=PAGE,
        )  # fmt: skip
        width, split = max(lengths), len(self.prefixes) * self.prefix_len
        q, k, v = self.tokens(split + len(self.rows) * width)
        out = self.run(layout, q, k, v)
        for i, (keys, values) in enumerate(self.shared):
            part = slice(i * self.prefix_len, (i + 1) * self.prefix_len)
            keys.extend(k[part])
            values.extend(v[part])
            for at in range(part.start, part.stop):
                torch.testing.assert_close(out[at], dense(q[at], keys, values), atol=1e-5, rtol=1e-5)
        for row, length in enumerate(lengths):
            for column in range(length):
                at = split + row * width + column
                self.own[row][0].append(k[at])
                self.own[row][1].append(v[at])
                torch.testing.assert_close(out[at], self.expected(row, q[at]), atol=1e-5, rtol=1e-5)

    def decode(self, chosen: list[int]) -> None:
        self.arena.clear()
        layout = decode_layout(self.arena, self.table, self.rows[chosen], prefix_len=self.prefix_len, page_size=PAGE)
        q, k, v = self.tokens(len(chosen))
        out = self.run(layout, q, k, v)
        for at, row in enumerate(chosen):
            self.own[row][0].append(k[at])
            self.own[row][1].append(v[at])
            torch.testing.assert_close(out[at], self.expected(row, q[at]), atol=1e-5, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    prefix_len=st.integers(1, 11),
    owners=st.lists(st.integers(NO_PREFIX, 2), min_size=1, max_size=6),
    heads=st.sampled_from([(2, 2), (4, 2), (3, 1)]),
    data=st.data(),
)
def test_equals_dense_attention(
    seed: int, prefix_len: int, owners: list[int], heads: tuple[int, int], data: st.DataObject
) -> None:
    """Prefixes that end in mid-page, rows with and without one, ragged prompts, then decode steps of any rows."""
    world = World(seed, prefix_len, owners, *heads)
    world.prefill(data.draw(st.lists(st.integers(1, 9), min_size=len(owners), max_size=len(owners))))
    for _ in range(4):
        world.decode(data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, unique=True)))
