"""The row table: one row for each sequence that has been launched and not yet let go.

The host's half says where a row stands (positions, pages, prefix); the device's half holds what the row feeds next,
left there by sampling, so that the next forward needs nothing from the host.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from photon.device.device import Device
from photon.engine.pages import SCRATCH
from photon.skills.grammar import Demand

Ints: TypeAlias = npt.NDArray[np.int64]
NO_PREFIX = -1


class RowTable:
    """``rows`` places for sequences and ``prefixes`` places for image prefixes.

    ``base``: position of a row's first suffix token (the prefix's length, or 0). ``length``: suffix tokens launched.
    ``prefix``: the row's prefix, or NO_PREFIX. ``demand``: the columns of ``skills.grammar.Demand`` for the row's next
    sample, nothing for a finalized row. ``draw``: temperature, top-p and top-k; ``seed``: of the noise. ``adapter`` and
    ``prefix_adapter``: slots of the bank, 0 for none; ``adapted``: how many rows are out with one.

    One row more, ``dummy``, and one prefix more, in place of NO_PREFIX, are nobody's and lie on the scratch page: what
    fills a step up to a bucket reads and writes there.
    """

    def __init__(self, rows: int, prefixes: int, suffix_pages: int, prefix_pages: int, device: Device) -> None:
        self._rows, self._prefixes = rows, prefixes
        self.dummy, rows, prefixes = rows, rows + 1, prefixes + 1
        self.base = np.zeros(rows, np.int64)
        self.length = np.zeros(rows, np.int64)
        self.prefix = np.full(rows, NO_PREFIX, np.int64)
        self.pages = np.full((rows, suffix_pages), SCRATCH, np.int64)
        self.demand = np.zeros((rows, len(Demand._fields)), np.int64)
        self.seed = np.zeros(rows, np.int64)
        self.draw = np.zeros((rows, 3), np.float32)
        self.adapter = np.zeros(rows, np.int64)
        self.prefix_pages = np.full((prefixes, prefix_pages), SCRATCH, np.int64)
        self.prefix_adapter = np.zeros(prefixes, np.int64)
        # What each row feeds next; see models.moondream.Moondream.embed.
        self.next_ids = device.buffer(rows, dtype=torch.int64)
        self.next_kinds = device.buffer(rows, dtype=torch.int64)
        self.next_values = device.buffer(rows, 2, dtype=torch.float32)
        self.reset()

    def reset(self) -> None:
        """Take every row and prefix back, whoever holds it."""
        self.adapted = 0
        self._free_rows = list(range(self._rows - 1, -1, -1))
        self._free_prefixes = list(range(self._prefixes - 1, -1, -1))

    @property
    def free_rows(self) -> int:
        return len(self._free_rows)

    @property
    def free_prefixes(self) -> int:
        return len(self._free_prefixes)

    def acquire_row(self, *, base: int, prefix: int, pages: list[int], adapter: int = 0) -> int:
        row = self._free_rows.pop()
        self.base[row], self.length[row], self.prefix[row] = base, 0, prefix
        self.adapter[row] = adapter
        self.adapted += adapter > 0
        self.pages[row] = SCRATCH
        self.pages[row, : len(pages)] = pages
        return row

    def release_row(self, row: int) -> None:
        if row in self._free_rows:
            raise AssertionError(f"row {row} is released twice")
        self._free_rows.append(row)
        self.adapted -= int(self.adapter[row] > 0)

    def acquire_prefix(self, pages: list[int], adapter: int = 0) -> int:
        prefix = self._free_prefixes.pop()
        self.prefix_pages[prefix] = pages
        self.prefix_adapter[prefix] = adapter
        return prefix

    def release_prefix(self, prefix: int) -> None:
        if prefix in self._free_prefixes:
            raise AssertionError(f"prefix {prefix} is released twice")
        self._free_prefixes.append(prefix)

    def padded(self, rows: Ints, count: int) -> Ints:
        """``rows``, and the dummy as often as it takes to be ``count``."""
        filled = np.full(count, self.dummy, np.int64)
        filled[: len(rows)] = rows
        return filled

    def require(self, rows: list[int], demands: list[int]) -> None:
        """What the next samples of these rows have to be, now that their last ones are known; demands end to end."""
        if rows:
            self.demand[rows] = np.array(demands, np.int64).reshape(len(rows), -1)

    def check_home(self) -> None:
        out = self._rows - len(self._free_rows), self._prefixes - len(self._free_prefixes)
        if any(out):
            raise AssertionError(f"{out[0]} rows and {out[1]} prefixes are still out")
