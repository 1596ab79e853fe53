"""Part of section 1: the Triton attention kernel against its torch reference, at the published shape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.rows import Day, Figure, Row, Unavailable, skipped

PAGE, PREFIX, HEADS, DIM = 16, 730, 32, 64
SHAPES = ((1, 1), (8, 1), (64, 1), (4, 12))
_LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""Of the largest value. bfloat16 keeps 8 bits, and the kernel rounds its weights to it once more than float32 does."""


def rows(day: Day) -> Iterator[Row]:
    for dtype, (count, width) in product(_LARGEST_ERROR, SHAPES):
        name = str(dtype).removeprefix("torch.")
        what = f"Triton against torch, {name}, {count} rows x {width} tokens, prefix {PREFIX}"
        yield day.attempt(what, partial(_compare, day, dtype, count, width)) if day.cuda else skipped(what)


def _compare(day: Day, dtype: torch.dtype, count: int, width: int) -> dict[str, Figure]:
    try:
        from photon.kernels.flat import attention_reference
        from photon.kernels.triton_paged import paged_attention
    except ImportError as missing:
        raise Unavailable(f"no Triton kernel here: {missing}") from None
    q, keys, values, layout = case(count, width, dtype, torch.device(day.device))
    ours = paged_attention(q, keys, values, layout)
    exact = attention_reference(q.float(), keys.float(), values.float(), layout)
    error = ((ours.float() - exact).abs().max() / exact.abs().max()).item()
    if not error <= _LARGEST_ERROR[dtype]:
        raise AssertionError(f"off by {error:.2e} of the largest value, allowed is {_LARGEST_ERROR[dtype]:.0e}")
    seconds = _time(lambda: paged_attention(q, keys, values, layout))
    read = 2 * HEADS * DIM * dtype.itemsize * (count * PREFIX + int(layout.offsets.max(dim=1).values.add(1).sum()))
    return {
        "error": Figure(error, "of largest"),
        "kernel": Figure(1e3 * seconds, "ms a layer"),
        "keys and values": Figure(read / seconds / 1e9, "GB/s"),
    }


def case(count: int, width: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Queries, keys, values and layout: rows with own suffixes of ``width`` to 100 tokens on prefixes of two pictures,
    every third one without."""
    from photon.kernels.flat import FlatLayout

    dice = torch.Generator().manual_seed(count * 100 + width)
    prefix_pages, suffix_pages = -(-PREFIX // PAGE), 8
    total = 1 + 2 * prefix_pages + count * suffix_pages
    lengths = torch.randint(width, 101, (count,), generator=dice)
    offsets = lengths[:, None] - width + torch.arange(width)
    order = 1 + torch.randperm(total - 1, generator=dice)
    own = order[2 * prefix_pages :].view(count, suffix_pages)
    shared = order[: 2 * prefix_pages].view(2, prefix_pages)[torch.arange(count) % 2]
    has = torch.arange(count) % 3 != 2
    layout = FlatLayout(
        positions=(has[:, None] * PREFIX + offsets).flatten().to(device),
        targets=(own.gather(1, offsets // PAGE) * PAGE + offsets % PAGE).flatten().to(device),
        offsets=offsets.to(device),
        prefix_lengths=torch.where(has, PREFIX, 0).to(device),
        prefix_pages=torch.where(has[:, None], shared, 0).to(device),
        suffix_pages=own.to(device),
        adapters=None,
    )
    keys, values = (torch.randn(HEADS, total, PAGE, DIM, generator=dice).to(device, dtype) for _ in range(2))
    return torch.randn(count, width, HEADS, DIM, generator=dice).to(device, dtype), keys, values, layout


def _time(run: Any, repeats: int = 20) -> float:
    """Seconds of one call among ``repeats`` that follow each other."""
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats
