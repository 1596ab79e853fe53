"""Finished rows, gathered by chunk until a chunk is whole. Chunk ``c`` holds rows [c * size, (c + 1) * size)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

#: One result row, as the writer takes it.
Cells: TypeAlias = dict[str, Any]


class Chunks:
    """Rows come in any order; a whole chunk leaves at once, in plan order, through ``send(chunk, rows)``."""

    def __init__(self, size: int, send: Callable[[int, list[Cells]], None]) -> None:
        self._size = size
        self._send = send
        self._open: dict[int, dict[int, Cells]] = {}

    def add(self, index: int, cells: Cells) -> None:
        """``index`` is the row's place in the plan. Raises ``ValueError`` when a row comes twice."""
        number = index // self._size
        chunk = self._open.setdefault(number, {})
        if index in chunk:
            raise ValueError(f"row {index} came twice")
        chunk[index] = cells
        if len(chunk) == self._size:
            self._close(number)

    def finish(self) -> None:
        """Sends the last, shorter chunk. Call it when every row of the plan has come, and not before."""
        for number in sorted(self._open):
            self._close(number)

    @property
    def waiting(self) -> int:
        """Rows of chunks that are not whole yet."""
        return sum(len(chunk) for chunk in self._open.values())

    def _close(self, number: int) -> None:
        chunk = self._open.pop(number)
        self._send(number, [chunk[index] for index in sorted(chunk)])
