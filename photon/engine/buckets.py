"""Which sizes a step is captured in, and which of them a step takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

_SMALL = (1, 2, 4, 8, 16)
_FINE, _COARSE = 8, 32
_FINE_UP_TO = 64


def row_buckets(most: int) -> tuple[int, ...]:
    """1, 2, 4, 8, 16, the multiples of 8 up to 64 and of 32 from there, below ``most``; and ``most``.

    A decode step reads the weights however many rows it has, so that a few rows too many cost little; each bucket costs
    memory, and time at the start.
    """
    fine = range(_SMALL[-1] + _FINE, _FINE_UP_TO + 1, _FINE)
    sizes = (*_SMALL, *fine, *range(_FINE_UP_TO + _COARSE, most, _COARSE))
    return (*(size for size in sizes if size < most), most)


def crop_buckets(most: int) -> tuple[int, ...]:
    """Powers of two below ``most``, and ``most``. A crop that fills up costs as much as any other."""
    sizes = (1 << power for power in range(most.bit_length()))
    return (*(size for size in sizes if size < most), most)


def bucket_of(count: int, buckets: Sequence[int]) -> int | None:
    """The smallest of the ascending ``buckets`` that holds ``count``; None where none does."""
    at = bisect_left(buckets, count)
    return buckets[at] if at < len(buckets) else None
