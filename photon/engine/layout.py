"""The step layout of a launch: numbers for the host's row table, laid into a slot's staging.

One function for each kind of step; see ``kernels.paged.StepLayout`` for what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from torch import Tensor

from photon.engine.pages import SCRATCH
from photon.engine.rows import NO_PREFIX, Ints, RowTable
from photon.engine.slots import Arena
from photon.kernels.flat import FlatLayout
from photon.kernels.paged import StepLayout


def decode_layout(arena: Arena, table: RowTable, rows: Ints, *, prefix_len: int, page_size: int) -> StepLayout:
    """One token for each of ``rows``, at the end of its suffix. Advances the rows' lengths."""
    offsets = table.length[rows]
    table.length[rows] += 1
    nth, at = np.divmod(offsets, page_size)
    page = table.pages[rows, nth]
    return _assemble(
        arena,
        table,
        rows,
        prefixes=0,
        prefix_len=prefix_len,
        positions=table.base[rows] + offsets,
        targets=page * page_size + at,
        offsets=offsets[:, None],
        page_size=page_size,
        adapters=_adapters(table, rows),
    )


def bucket_layout(
    arena: Arena, table: RowTable, rows: Ints, bucket: int, *, prefix_len: int, page_size: int, adapters: bool
) -> tuple[Tensor, FlatLayout]:
    """``decode_layout`` for a captured step of ``bucket`` rows: the row numbers [bucket], and the layout.

    Laid down from the arena's start, and with shapes that hang on the bucket alone, so that each array is in the same
    place every time. Padding is the table's dummy row: it feeds what that row holds, writes to the scratch page and
    sees nothing. ``adapters``: whether there is a bank.
    """
    if arena.used:
        raise AssertionError("a captured step's numbers begin where its slot's staging does")
    count, padded = len(rows), table.padded(rows, bucket)
    offsets = table.length[padded]
    table.length[rows] += 1
    nth, at = np.divmod(offsets, page_size)
    targets = table.pages[padded, nth] * page_size + at
    positions = table.base[padded] + offsets
    offsets[count:] = -1
    prefix = table.prefix[padded]
    lengths = np.where(prefix == NO_PREFIX, 0, prefix_len)
    pages = table.prefix_pages[prefix], table.pages[padded]
    slots = (table.adapter[padded],) if adapters else ()
    numbers, *placed = arena.place(padded, positions, targets, offsets[:, None], lengths, *pages, *slots)
    return numbers, FlatLayout(
        positions=placed[0],
        targets=placed[1],
        offsets=placed[2],
        prefix_lengths=placed[3],
        prefix_pages=placed[4],
        suffix_pages=placed[5],
        adapters=placed[6] if adapters else None,
    )


def prefill_layout(
    arena: Arena,
    table: RowTable,
    prefixes: Seq[int],
    rows: Ints,
    lengths: Ints,
    *,
    prefix_len: int,
    page_size: int,
) -> StepLayout:
    """Whole ``prefixes``, then the first ``lengths`` suffix tokens of ``rows``, padded to the longest.

    Padding writes to the scratch page and reads what its row's first token reads. Sets the rows' lengths.
    """
    width = int(lengths.max())
    table.length[rows] = lengths
    at = np.arange(prefix_len)
    prefix_pages = table.prefix_pages[list(prefixes)][:, at // page_size]
    column = np.arange(width)
    real = column < lengths[:, None]
    offsets = np.where(real, column, 0)
    pages = np.where(real, table.pages[rows[:, None], offsets // page_size], SCRATCH)
    adapters = _adapters(table, rows)
    if adapters is not None:
        of_prefixes = np.repeat(table.prefix_adapter[list(prefixes)], prefix_len)
        adapters = np.concatenate((of_prefixes, np.repeat(adapters, width)))
    return _assemble(
        arena,
        table,
        rows,
        prefixes=len(prefixes),
        prefix_len=prefix_len,
        positions=np.concatenate((np.tile(at, len(prefixes)), (table.base[rows][:, None] + offsets).ravel())),
        targets=np.concatenate(
            ((prefix_pages * page_size + at % page_size).ravel(), (pages * page_size + offsets % page_size).ravel())
        ),
        offsets=offsets,
        page_size=page_size,
        adapters=adapters,
    )


def _assemble(
    arena: Arena,
    table: RowTable,
    rows: Ints,
    *,
    prefixes: int,
    prefix_len: int,
    positions: Ints,
    targets: Ints,
    offsets: Ints,
    page_size: int,
    adapters: Ints | None,
) -> StepLayout:
    suffix_pages = table.pages[rows, : offsets.max() // page_size + 1]
    groups, members, seats, has_prefix = _groups(table.prefix[rows].tobytes())
    placed = arena.place(positions, targets, offsets, suffix_pages, table.prefix_pages[groups], members, seats)
    return StepLayout(
        prefixes,
        prefix_len,
        positions=placed[0],
        targets=placed[1],
        offsets=placed[2],
        suffix_pages=placed[3],
        prefix_pages=placed[4],
        members=placed[5],
        seats=placed[6],
        has_prefix=None if has_prefix is None else arena.place(has_prefix)[0],
        adapters=None if adapters is None else arena.place(adapters)[0],
    )


def _adapters(table: RowTable, rows: Ints) -> Ints | None:
    """The rows' adapter slots; None where none has one, and with it no prefix that is computed for one of them."""
    if not table.adapted:
        return None
    slots = table.adapter[rows]
    return slots if slots.any() else None


@lru_cache(maxsize=256)
def _groups(prefixes: bytes) -> tuple[Ints, Ints, Ints, npt.NDArray[np.bool_] | None]:
    """Rows by shared prefix: (prefix of each group, rows of each group padded with row 0, seat of each row, which rows
    have one, or None where all or none do).

    ``prefixes``: the rows' prefixes as int64 bytes; decode steps repeat each other, so the answer is remembered. Rows
    without a prefix sit in the first group; they are told apart by the last value.
    """
    prefix = np.frombuffer(prefixes, np.int64)
    bare = prefix == NO_PREFIX
    if bare.all():
        return np.empty(0, np.int64), np.empty((0, 0), np.int64), np.empty(0, np.int64), None
    if bare.any():
        prefix = np.where(bare, prefix[~bare].min(), prefix)
    groups, group, counts = np.unique(prefix, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(prefix)) - np.repeat(np.cumsum(counts) - counts, counts)
    per_group = int(counts.max())
    members = np.zeros((len(groups), per_group), np.int64)
    members[group, place] = np.arange(len(prefix))
    return groups, members, group * per_group + place, ~bare if bare.any() else None
