"""Paged attention in Triton: what ``flat.attention_reference`` computes, read in place by page.

One program takes one kv head of one row: the row's queries on it, width x heads per kv head, make the query block
(several where they are many), so that a page is read once for all of them. Long contexts are split among programs, each
of which leaves its part's mean and log-sum-exp for a second kernel to join. The grid depends on sizes alone; how far to
read comes from device memory, so that a captured launch may be replayed with other rows.

Importing this needs Triton, so ``flat`` imports it where it is used. Scores, softmax and sums are float32, and float32
inputs are not rounded to TF32. Keys and values are not stored here.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from photon.errors import UsageError
from photon.kernels.flat_layout import LARGEST_HEAD, FlatLayout

_LOG2_E = 1.4426950408889634
# The smallest side of Triton's matrix product. The most queries of a program, and the positions it reads at a time:
# float32 is multiplied outside the tensor cores, and larger tiles would not stay in registers.
_FEWEST_QUERIES = 16
_TILES = {torch.float32: (32, 32), torch.float16: (64, 64), torch.bfloat16: (64, 64)}
# A context is split into at most so many parts, none shorter, while fewer programs run than keep a large GPU busy.
_MOST_SPLITS, _SHORTEST_PART, _ENOUGH_PROGRAMS = 16, 128, 512
# What changes from step to step must not make Triton compile anew.
_VARYING = ["offsets", "prefix_lengths", "prefix_pages", "suffix_pages", "width", "prefix_width", "suffix_width"]


@triton.jit
def _read(
    x: tl.tensor, keys: tl.tensor, values: tl.tensor, pages: tl.tensor, first: tl.tensor, last: tl.tensor,
    limit: tl.tensor, best: tl.tensor, total: tl.tensor, acc: tl.tensor, scale: tl.tensor,
    DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, UPCAST: tl.constexpr,
) -> Any:  # fmt: skip
    """Take places ``first`` to ``last`` of ``pages`` into the running softmax; query i sees those below ``limit[i]``.

    ``best`` and ``total`` [queries]: largest score so far, in base 2, and sum of weights relative to it; ``acc``
    [queries, dim]: the weighted sum of values.
    """
    d = tl.arange(0, BLOCK_D)
    for start in range(first, last, BLOCK_N):
        at = start + tl.arange(0, BLOCK_N)
        there = at < last
        page = tl.load(pages + at // PAGE, mask=there, other=0)
        place = (page * PAGE + at % PAGE)[:, None] * DIM + d[None, :]
        read = there[:, None] & (d < DIM)[None, :]
        k = tl.load(keys + place, mask=read, other=0.0)
        v = tl.load(values + place, mask=read, other=0.0)
        if UPCAST:
            k, v = k.to(tl.float32), v.to(tl.float32)
        scores = tl.dot(x, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(at[None, :] < limit[:, None], scores, float("-inf"))
        top = tl.maximum(best, tl.max(scores, 1))
        safe = tl.where(top == float("-inf"), 0.0, top)  # a query that sees nothing yet: -inf less -inf is NaN
        weights = tl.exp2(scores - safe[:, None])
        fade = tl.exp2(best - safe)
        total = total * fade + tl.sum(weights, 1)
        acc = acc * fade[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        best = top
    return best, total, acc


@triton.jit(do_not_specialize=_VARYING)
def _attend(
    q: tl.tensor, keys: tl.tensor, values: tl.tensor, offsets: tl.tensor, prefix_lengths: tl.tensor,
    prefix_pages: tl.tensor, suffix_pages: tl.tensor, out: tl.tensor, lse: tl.tensor, width: tl.tensor,
    prefix_width: tl.tensor, suffix_width: tl.tensor, head_stride: tl.tensor, scale: tl.tensor,
    GROUP: tl.constexpr, DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, SPLIT: tl.constexpr, UPCAST: tl.constexpr,
) -> None:  # fmt: skip
    """Grid: rows x query blocks, kv heads, splits. ``out`` [rows, width, heads, splits, dim]; ``lse`` the same without
    dim, in base 2, -inf where a part has nothing to see. Without SPLIT there is one split and ``lse`` is not written.
    """
    blocks = tl.cdiv(width * GROUP, BLOCK_M)
    row, head, split = tl.program_id(0) // blocks, tl.program_id(1), tl.program_id(2)
    splits = tl.num_programs(2)
    m = (tl.program_id(0) % blocks) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    real = m < width * GROUP
    token = row.to(tl.int64) * width + m // GROUP
    query = (token * tl.num_programs(1) + head) * GROUP + m % GROUP
    held = real[:, None] & (d < DIM)[None, :]
    x = tl.load(q + query[:, None] * DIM + d[None, :], mask=held, other=0.0)
    if UPCAST:
        x = x.to(tl.float32)

    offset = tl.load(offsets + token, mask=real, other=-1).to(tl.int32)
    own = tl.max(offset, 0) + 1
    prefix = tl.where(own > 0, tl.load(prefix_lengths + row).to(tl.int32), 0)
    # The parts share the row's real length, so that none idles while others read; short rows fill the first ones only.
    part = tl.cdiv(tl.cdiv(prefix + own, splits), BLOCK_N) * BLOCK_N
    first, last = split * part, (split + 1) * part
    keys += head.to(tl.int64) * head_stride
    values += head.to(tl.int64) * head_stride
    best = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = tl.minimum(last, prefix)
    best, total, acc = _read(
        x, keys, values, prefix_pages + row * prefix_width, first, end, tl.where(offset < 0, 0, end),
        best, total, acc, scale, DIM, PAGE, BLOCK_N, BLOCK_D, UPCAST,
    )  # fmt: skip
    end = tl.minimum(last - prefix, own)
    best, total, acc = _read(
        x, keys, values, suffix_pages + row * suffix_width, tl.maximum(first - prefix, 0), end,
        tl.minimum(offset + 1, end), best, total, acc, scale, DIM, PAGE, BLOCK_N, BLOCK_D, UPCAST,
    )  # fmt: skip

    total = tl.where(total > 0, total, 1.0)  # nothing seen: zeros
    place = query * splits + split
    tl.store(out + place[:, None] * DIM + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=held)
    if SPLIT:
        tl.store(lse + place, best + tl.log2(total), mask=real)


@triton.jit(do_not_specialize=["splits"])
def _join(
    parts: tl.tensor, lse: tl.tensor, out: tl.tensor, splits: tl.tensor,
    DIM: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
) -> None:  # fmt: skip
    """Grid: queries. ``parts`` [queries, splits, dim] and ``lse`` [queries, splits] to ``out`` [queries, dim]."""
    query = tl.program_id(0).to(tl.int64)
    s, d = tl.arange(0, BLOCK_S), tl.arange(0, BLOCK_D)
    place = query * splits + s
    weights = tl.load(lse + place, mask=s < splits, other=float("-inf"))
    top = tl.max(weights, 0)
    weights = tl.exp2(weights - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(weights, 0)
    held = (s < splits)[:, None] & (d < DIM)[None, :]
    mean = tl.load(parts + place[:, None] * DIM + d[None, :], mask=held, other=0.0)
    mean = tl.sum(mean * weights[:, None], 0) / tl.where(total > 0, total, 1.0)
    tl.store(out + query * DIM + d, mean.to(out.dtype.element_ty), mask=d < DIM)


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with all that it is called with; ``options`` are its constants and Triton's own."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> None:
        self.kernel[self.grid](*self.arguments, **self.options)


def paged_attention(q: Tensor, keys: Tensor, values: Tensor, layout: FlatLayout) -> Tensor:
    """``q`` [rows, width, heads, dim] over what the layout lets each token see; same shape back.

    ``keys``, ``values``: [kv heads, pages, page size, dim] of ``q``'s dtype: float32, float16 or bfloat16. The kernels
    are compiled at their first call, so a graph is captured after one of the same shapes. Raises ``UsageError``.
    """
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    for launch in launches(q, keys, values, layout, out):
        launch.run()
    return out


def launches(
    q: Tensor, keys: Tensor, values: Tensor, layout: FlatLayout, out: Tensor, splits: int | None = None
) -> list[Launch]:
    """What ``paged_attention`` launches to fill ``out``; ``splits`` replaces its own choice of parts."""
    _check(q, keys, values)
    rows, width, heads, dim = q.shape
    if not out.numel():
        return []
    kv_heads, pages, page_size = keys.shape[:3]
    group = heads // kv_heads
    most, block_n = _TILES[q.dtype]
    block_m = min(max(triton.next_power_of_2(width * group), _FEWEST_QUERIES), most)
    block_d = max(triton.next_power_of_2(dim), 16)
    rectangles = rows * triton.cdiv(width * group, block_m)
    if splits is None:
        capacity = (layout.prefix_pages.shape[1] + layout.suffix_pages.shape[1]) * page_size
        splits = split_count(capacity, rectangles * kv_heads)
    parts, lse = out, out
    if splits > 1:
        parts = q.new_empty(*q.shape[:3], splits, dim, dtype=torch.float32)
        lse = q.new_empty(*q.shape[:3], splits, dtype=torch.float32)
    tables = [
        table.contiguous()
        for table in (layout.offsets, layout.prefix_lengths, layout.prefix_pages, layout.suffix_pages)
    ]
    sizes = (width, layout.prefix_pages.shape[1], layout.suffix_pages.shape[1], pages * page_size * dim)
    options = {
        "GROUP": group, "DIM": dim, "PAGE": page_size,
        "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_D": block_d,
        "SPLIT": splits > 1, "UPCAST": _interpreted() and q.dtype == torch.bfloat16,
        "num_warps": 4, "num_stages": 2,
    }  # fmt: skip
    arguments = (q.contiguous(), keys, values, *tables, parts, lse, *sizes, dim**-0.5 * _LOG2_E)
    found = [Launch(_attend, (rectangles, kv_heads, splits), arguments, options)]
    if splits > 1:
        constants = {"DIM": dim, "BLOCK_S": triton.next_power_of_2(splits), "BLOCK_D": block_d, "num_warps": 1}
        found.append(Launch(_join, (rows * width * heads,), (parts, lse, out, splits), constants))
    return found


def split_count(capacity: int, programs: int) -> int:
    """Parts of a context for tables of ``capacity`` positions, where ``programs`` run without splitting.

    From sizes that a captured step has fixed, never from lengths.
    """
    return max(1, min(_MOST_SPLITS, capacity // _SHORTEST_PART, -(-_ENOUGH_PROGRAMS // programs)))


def _check(q: Tensor, keys: Tensor, values: Tensor) -> None:
    heads, dim = q.shape[2:]
    if q.dtype not in _TILES or keys.dtype != q.dtype or values.dtype != q.dtype:
        raise UsageError(
            f"the attention kernels take queries, keys and values of one dtype, float32, float16 or bfloat16; "
            f"not {q.dtype}, {keys.dtype} and {values.dtype}"
        )
    if dim > LARGEST_HEAD:
        raise UsageError(f"the attention kernels are for head dims up to {LARGEST_HEAD}, not {dim}; use the reference")
    if heads % keys.shape[0]:
        raise UsageError(f"{heads} heads are not a multiple of {keys.shape[0]} kv heads")
    if not (keys.is_contiguous() and values.is_contiguous()):
        raise UsageError("keys and values must be contiguous, one layer of a KVPool each")


def _interpreted() -> bool:
    """Under TRITON_INTERPRET=1 numpy stands in for the GPU; bfloat16 numbers are integers to its matrix product."""
    return not isinstance(_attend, triton.JITFunction)
