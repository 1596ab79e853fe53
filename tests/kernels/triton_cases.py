"""What ``test_triton_paged`` runs in processes of their own: the Triton kernels against the reference.

With TRITON_INTERPRET=1 numpy stands in for the GPU, without it the kernels are compiled and a GPU is needed. Either way
the variable must be set before Triton is first imported, hence the other process.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace

import pytest
import torch
from torch import Tensor

from photon.kernels.flat import FlatLayout, attention_reference
from photon.kernels.triton_paged import Launch, launches, paged_attention
from tests.kernels.flat_world import Row, Shape, World

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
MOST_PROGRAMS = 300
#: Of the largest value, which is about 3. Float16 and bfloat16 round their weights and the output.
TOLERANCE = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
NAN = math.nan
IMAGE = 730


@dataclass(frozen=True)
class Case:
    rows: list[Row]
    prefixes: list[int]
    shape: Shape
    splits: int = 1
    width: int | None = None
    spare: int = 0


EDGES = [Row(15), Row(16), Row(17)]
ONE_HEAD = Shape(1, 1)
PICTURE = [Row(3, prefix=0), Row(17, prefix=0), Row(2)]
#: Run every day in float32.
CASES = {
    "page edges": Case(EDGES, [], ONE_HEAD),
    "prefill, grouped heads": Case([Row(3, 3, 0), Row(9, 5, 0), Row(5, 5)], [50], Shape(4, 2, 48), width=7),
    "parts": Case([Row(0, 0), Row(50), Row(9, prefix=0)], [33], ONE_HEAD, splits=2),
}
SLOW_CASES = {
    "length 1": Case([Row(1)], [], Shape()),
    "length 1 after a prefix of 1": Case([Row(1, prefix=0)], [1], Shape()),
    "page edges after a prefix": Case([replace(row, prefix=0) for row in EDGES], [16], Shape(dim=32), spare=1),
    "rows of nothing among others": Case([Row(0, 0), Row(20), Row(9, 0, 0)], [33], Shape()),
    "blocks of positions end with the row": Case([Row(32), Row(64), Row(33, 1, 0)], [31], ONE_HEAD, splits=2),
    "grouped heads, head dim 48": Case([Row(5, prefix=0), Row(40)], [20], Shape(6, 2, 48)),
    "nothing but padding": Case([Row(0, 0), Row(5, 0, 0)], [3], Shape(), width=2),
    "the first part holds all": Case([Row(1), Row(7, prefix=0)], [9], ONE_HEAD, splits=3, spare=4),
    "large pages": Case([Row(5, 2, 0), Row(70, 1)], [40], Shape(page_size=64)),
    "pages of 5": Case([Row(5, 2, 0), Row(13, 1)], [12], Shape(page_size=5)),
    "two query blocks": Case([Row(40, 40, 0), Row(33, 20)], [20], Shape(2, 1)),
    "a picture, head dim 64": Case(PICTURE, [IMAGE], Shape(dim=64)),
    "a picture, head dim 48": Case(PICTURE, [IMAGE], Shape(1, 1, 48)),
    "a picture, head dim 32": Case(PICTURE, [IMAGE], Shape(1, 1, 32)),
    "a picture, head dim 16": Case(PICTURE, [IMAGE], Shape(1, 1, 16)),
    "a picture in parts": Case([Row(1, 1, 0), Row(33, 1, 0), Row(4)], [IMAGE], Shape(2, 1, 64), splits=6),
    "questions on a picture": Case([Row(6, 6, 0), Row(11, 11, 0), Row(4, 2)], [IMAGE], Shape(4, 2, 64), spare=2),
    "two pictures": Case([Row(17, 2, 0), Row(1, 1, 1)], [IMAGE, 145], Shape(4, 1, 48), splits=2),
}
#: The same in dtypes that round. All that differs there are the sizes of the tiles and the casts.
HALF = ["page edges", "prefill, grouped heads", "parts", "a picture in parts", "questions on a picture"]
BFLOAT16 = ["page edges", "prefill, grouped heads", "parts"]


def parameters() -> list[object]:
    cases = {**CASES, **SLOW_CASES}
    runs = [(name, torch.float32) for name in cases]
    runs += [(name, torch.float16) for name in HALF] + [(name, torch.bfloat16) for name in BFLOAT16]
    found = []
    for name, dtype in runs:
        everyday = name in CASES and dtype == torch.float32
        case = replace(cases[name], shape=replace(cases[name].shape, dtype=dtype))
        marks = [] if everyday else [pytest.mark.slow]
        found.append(pytest.param(case, id=f"{name}, {str(dtype).removeprefix('torch.')}", marks=marks))
    return found


def on_device(layout: FlatLayout) -> FlatLayout:
    parts = {f.name: getattr(layout, f.name) for f in fields(layout)}
    return FlatLayout(**{name: None if part is None else part.to(DEVICE) for name, part in parts.items()})


def check(out: Tensor, world: World) -> None:
    """Against softmax written out and, with nothing but finite numbers in the pool, the reference in float32."""
    tolerance = TOLERANCE[world.shape.dtype]
    assert out.dtype == world.shape.dtype
    out = out.double().cpu()
    torch.testing.assert_close(out, world.expected(), atol=tolerance, rtol=tolerance)
    pools = (pool.float().nan_to_num(1e4) for pool in (world.keys, world.values))
    reference = attention_reference(world.queries().float(), *pools, world.layout)
    torch.testing.assert_close(out, reference.double(), atol=tolerance, rtol=tolerance)
    assert (out[world.layout.offsets < 0] == 0).all()


def prepared(world: World, splits: int) -> tuple[list[Launch], Tensor, FlatLayout]:
    world.stored()
    q, keys, values = (x.to(DEVICE) for x in (world.queries(), world.keys, world.values))
    out = torch.full_like(q, NAN)
    layout = on_device(world.layout)
    found = launches(q, keys, values, layout, out, splits)
    assert sum(math.prod(launch.grid) for launch in found) <= MOST_PROGRAMS
    return found, out, layout


@pytest.mark.parametrize("case", parameters())
def test_equals_the_reference(case: Case) -> None:
    """What nobody wrote is NaN here: it must not be read at all."""
    world = World(case.rows, case.prefixes, case.shape, width=case.width, spare=case.spare, junk=NAN)
    found, out, _ = prepared(world, case.splits)
    assert len(found) == (1 if case.splits == 1 else 2)
    for launch in found:
        launch.run()
    check(out, world)


@pytest.mark.slow
def test_paged_attention_chooses_the_parts_itself() -> None:
    """Tables of 400 positions are read in three parts. Nothing that is handed in is changed."""
    world = World([Row(3, 2), Row(390, 1)], [], Shape(dim=32), junk=NAN).stored()
    before = [x.clone() for x in (world.q, world.keys, world.values, world.layout.offsets)]
    tensors = (x.to(DEVICE) for x in (world.queries(), world.keys, world.values))
    check(paged_attention(*tensors, on_device(world.layout)), world)
    for x, was in zip((world.q, world.keys, world.values, world.layout.offsets), before, strict=True):
        torch.testing.assert_close(x, was, rtol=0, atol=0, equal_nan=True)


@pytest.mark.slow
def test_the_same_launches_serve_other_rows() -> None:
    """As a captured graph does: everything that differs between two steps is read from device memory."""
    shape = Shape(4, 2)
    first = World([Row(1), Row(44, 1, 0), Row(17, 2)], [30], shape, junk=NAN, seed=1)
    found, out, layout = prepared(first, splits=2)
    second = World([Row(48, 2, 0), Row(0, 0), Row(2, 1, 0)], [30], shape, junk=NAN, seed=2).stored()
    q, keys, values = found[0].arguments[:3]
    q.copy_(second.queries())
    for pool, fresh in ((keys, second.keys), (values, second.values)):
        pool.fill_(NAN)[:, : fresh.shape[1]] = fresh.to(DEVICE)
    for name in ("offsets", "prefix_lengths", "prefix_pages", "suffix_pages"):
        getattr(layout, name).copy_(getattr(second.layout, name))
    for launch in found:
        launch.run()
    check(out, second)


@pytest.mark.slow
def test_a_query_that_is_not_contiguous() -> None:
    """And page tables that are columns of larger ones, one line for all rows."""
    world = World([Row(18, 3, 0), Row(9, 2, 0)], [20], Shape(dim=32), spare=1, junk=NAN).stored()
    layout = on_device(world.layout)
    layout.prefix_pages = layout.prefix_pages[:1].expand(2, -1)
    layout.suffix_pages = torch.cat((layout.suffix_pages, layout.suffix_pages), 1)[:, : layout.suffix_pages.shape[1]]
    q = world.queries().transpose(1, 2).contiguous().transpose(1, 2)
    assert not q.is_contiguous()
    check(paged_attention(q.to(DEVICE), world.keys.to(DEVICE), world.values.to(DEVICE), layout), world)


def test_no_rows() -> None:
    world = World([Row(3)], [], Shape())
    layout = world.layout
    for name in ("offsets", "prefix_lengths", "prefix_pages", "suffix_pages"):
        setattr(layout, name, getattr(layout, name)[:0])
    q = world.queries()[:0].to(DEVICE)
    assert paged_attention(q, world.keys.to(DEVICE), world.values.to(DEVICE), on_device(layout)).shape == (0, 1, 2, 16)
