"""Pages of the key/value pool: which are free, and how a sequence's positions lie on them.

A page belongs to one owner: an image prefix (shared by counting its users, see ``picture``) or one sequence's suffix.
A prefix ends on a page of its own: suffix position p >= L lies on page ceil(L / size) + (p - L) // size.
"""

from __future__ import annotations

from collections.abc import Sequence

SCRATCH = 0
"""Padding tokens write here; no owner ever gets it."""


class PagePool:
    """Hands out page numbers 1 .. capacity. The last returned go out first, so that a quiet run touches few."""

    def __init__(self, capacity: int, page_size: int) -> None:
        self.capacity = capacity
        self.page_size = page_size
        self.reset()

    def reset(self) -> None:
        """Take every page back, whoever holds it."""
        self._free = list(range(self.capacity, 0, -1))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        return len(self._free)

    def acquire(self, count: int) -> list[int]:
        """Take ``count`` pages. The caller has looked at ``free``; asking for more is a bug."""
        if count > len(self._free):
            raise AssertionError(f"{count} pages asked for, {len(self._free)} free")
        pages = [self._free.pop() for _ in range(count)]
        self._taken.update(pages)
        return pages

    def release(self, pages: Sequence[int]) -> None:
        """Give pages back. A page that is not out is a bug: somebody frees twice."""
        for page in pages:
            if page not in self._taken:
                raise AssertionError(f"page {page} is released, but nobody holds it")
            self._taken.remove(page)
            self._free.append(page)

    def check_home(self) -> None:
        """Every page is free. Called when the engine is idle."""
        if self._taken or len(self._free) != self.capacity:
            raise AssertionError(
                f"{len(self._taken)} of {self.capacity} pages are still out: {sorted(self._taken)[:8]}"
            )
