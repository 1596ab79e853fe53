"""Attention over flat layouts: the reference against softmax written out, and against the grouped route."""

from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from photon.kernels import flat, paged
from photon.kernels.flat import attend_flat, attention_reference
from photon.kernels.paged import StepLayout, attend, flat_of
from tests.kernels.flat_world import NO_PREFIX, Row, Shape, World


@st.composite
def worlds(draw: st.DrawFn) -> World:
    prefixes = draw(st.lists(st.integers(1, 11), max_size=2))
    width = draw(st.integers(1, 4))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        new = draw(st.integers(0, width))
        prefix = draw(st.integers(NO_PREFIX, len(prefixes) - 1))
        rows.append(Row(new + draw(st.integers(0, 9)), new, prefix))
    heads, kv_heads = draw(st.sampled_from([(2, 2), (4, 2), (3, 1)]))
    shape = Shape(heads, kv_heads, draw(st.sampled_from([8, 16])), draw(st.sampled_from([1, 4, 16])))
    return World(rows, prefixes, shape, width=width, spare=draw(st.integers(0, 2)), seed=draw(st.integers(0, 2**31)))


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_reference_is_softmax_over_what_a_token_sees(world: World) -> None:
    """Ragged rows with and without a prefix, padding, empty rows, scattered pages with junk where nobody wrote."""
    world.stored()
    out = attention_reference(world.queries(), world.keys, world.values, world.layout)
    torch.testing.assert_close(out.double(), world.expected(), atol=1e-5, rtol=1e-5)
    assert (out[world.layout.offsets < 0] == 0).all()


def grouped(world: World, prefix_len: int) -> StepLayout:
    """The same rows for ``attend``, each a group of its own; padding reads what its row's first token reads."""
    rows, layout = len(world.rows), world.layout
    has_prefix = layout.prefix_lengths > 0
    assert set(layout.prefix_lengths.tolist()) <= {0, prefix_len}
    return StepLayout(
        prefixes=0,
        prefix_len=prefix_len,
        positions=layout.positions,
        targets=layout.targets,
        offsets=layout.offsets.clamp(min=0),
        suffix_pages=layout.suffix_pages,
        prefix_pages=layout.prefix_pages,
        members=torch.arange(rows)[:, None],
        seats=torch.arange(rows),
        has_prefix=None if has_prefix.all() else has_prefix,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "rows",
    [
        [Row(1, 1, 0), Row(16, 1, 0), Row(17, 1, 1)],
        [Row(5, 5, 0), Row(20, 3, 1), Row(2, 2)],
    ],
    ids=["decode", "prefill"],
)
def test_equals_the_grouped_route(rows: list[Row], dtype: torch.dtype) -> None:
    """The same tokens stored in the same places, and the same attention for all that are not padding."""
    world = World(rows, [21, 21], Shape(heads=4, dtype=dtype), spare=1)
    pools = [(world.keys.clone(), world.values.clone()) for _ in range(2)]
    fresh = (world.q, world.k, world.v)
    one, other = attend_flat(*fresh, *pools[0], world.layout), attend(*fresh, *pools[1], grouped(world, 21))
    real = world.layout.offsets.flatten() >= 0
    tolerance = 1e-5 if dtype == torch.float32 else 2**-7
    assert one.dtype == dtype
    torch.testing.assert_close(one[real], other[real], atol=tolerance, rtol=tolerance)
    for mine, theirs in zip(*pools, strict=True):
        assert torch.equal(mine[:, 1:], theirs[:, 1:])  # page 0 is scratch: padding meets there


def shared(world: World) -> StepLayout:
    """The rows of ``grouped`` in the groups that share a prefix, rows without one in the first."""
    layout = grouped(world, 21)
    has_prefix = world.layout.prefix_lengths > 0
    pages = torch.stack([world.layout.prefix_pages[has_prefix][0], world.layout.prefix_pages[has_prefix][-1]])
    owned = zip(has_prefix, layout.prefix_pages, strict=True)
    group = [int(bool(has) and torch.equal(own, pages[1])) for has, own in owned]
    members = [[row for row, its in enumerate(group) if its == number] for number in (0, 1)]
    wide = max(map(len, members))
    layout.prefix_pages = pages
    layout.members = torch.tensor([rows + [0] * (wide - len(rows)) for rows in members])
    layout.seats = torch.tensor([its * wide + members[its].index(row) for row, its in enumerate(group)])
    return layout


def test_a_steps_suffixes_are_the_same_by_row_and_by_group() -> None:
    world = World([Row(5, 5, 0), Row(7, 2), Row(20, 3, 1), Row(9, 4, 0), Row(3, 3, 1)], [21, 21], Shape(heads=4))
    layout = shared(world)
    assert layout.members.shape[0] == 2
    assert layout.has_prefix is not None
    fresh = (world.q, world.k, world.v, world.keys.clone(), world.values.clone())
    by_group = attend(*fresh, layout)
    by_row = attention_reference(world.queries(), fresh[3], fresh[4], flat_of(layout)).flatten(0, 1)
    torch.testing.assert_close(by_row, by_group, atol=1e-5, rtol=1e-5)
    assert flat_of(layout) is flat_of(layout)


def test_a_prefill_on_cuda_reads_in_place_and_a_decode_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[int, ...]] = []

    def on_triton(q: Tensor, *rest: object) -> Tensor:
        called.append(tuple(q.shape))
        return q

    monkeypatch.setattr(flat, "_on_cuda", lambda: on_triton)
    for width in (3, 1):
        world = World([Row(5, width, 0), Row(20, width, 1)], [21, 21], Shape(heads=4))
        q = world.q.as_subclass(OnCuda)
        attend(q, world.k, world.v, world.keys, world.values, grouped(world, 21))
    assert called == [(2, 3, 4, 16)]


def test_a_prefill_on_cuda_without_the_kernels_gathers_a_shared_prefix_once(monkeypatch: pytest.MonkeyPatch) -> None:
    by_row: list[object] = []
    monkeypatch.setattr(flat, "_on_cuda", lambda: attention_reference)
    monkeypatch.setattr(paged, "attend_stored", lambda *parts: by_row.append(parts))
    world = World([Row(5, 3, 0), Row(20, 3, 1)], [21, 21], Shape(heads=4))
    on_cuda = attend(world.q.as_subclass(OnCuda), world.k, world.v, world.keys, world.values, grouped(world, 21))
    on_cpu = attend(world.q, world.k, world.v, world.keys, world.values, grouped(world, 21))
    assert torch.equal(on_cuda.as_subclass(Tensor), on_cpu)
    assert not by_row


def test_attend_takes_a_flat_layout() -> None:
    world = World([Row(3, 3, 0), Row(2, 1)], [5], Shape(page_size=4))
    out = attend(world.q, world.k, world.v, world.keys, world.values, world.layout)
    torch.testing.assert_close(out.view(world.queries().shape).double(), world.expected(), atol=1e-5, rtol=1e-5)


def test_no_rows() -> None:
    world = World([Row(3)], [], Shape())
    layout, nothing = world.layout, torch.empty(0, 1, 2, 16)
    for name in ("offsets", "prefix_lengths", "prefix_pages", "suffix_pages"):
        setattr(layout, name, getattr(layout, name)[:0])
    assert attention_reference(nothing, world.keys, world.values, layout).shape == nothing.shape


def test_cuda_takes_triton_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    from photon.kernels.triton_paged import paged_attention

    choose = flat._on_cuda.__wrapped__
    assert choose() is paged_attention
    monkeypatch.setitem(sys.modules, "photon.kernels.triton_paged", None)
    assert choose() is attention_reference


class OnCuda(Tensor):
    """Claims to be on a GPU."""

    is_cuda = True


@pytest.mark.parametrize(("dim", "kernel"), [(64, True), (80, False)])
def test_heads_too_large_for_the_kernels_take_the_reference(
    dim: int, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def on_triton(q: Tensor, *rest: object) -> Tensor:
        called.append(q.shape)
        return q

    monkeypatch.setattr(flat, "_on_cuda", lambda: on_triton)
    world = World([Row(3, 2), Row(4, 2)], [], Shape(dim=dim))
    attend_flat(world.q.as_subclass(OnCuda), world.k, world.v, world.keys, world.values, world.layout)
    assert called == ([(2, 2, 2, dim)] if kernel else [])
