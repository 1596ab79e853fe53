"""A prompt with ``{column}`` places, filled from each row. ``{{`` and ``}}`` stand for the braces themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from photon.errors import RowError

_MARK = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<column>[^{}]+)\}|(?P<stray>[{}])")


@dataclass(frozen=True, slots=True)
class Template:
    """``pieces`` are (literal text, column that follows it); the last one's column is None."""

    pieces: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Raises ``ValueError`` with a remedy on a brace that is neither doubled nor around a column's name."""
        pieces: list[tuple[str, str | None]] = []
        literal, done = "", 0
        for mark in _MARK.finditer(text):
            literal += text[done : mark.start()]
            done = mark.end()
            if mark["stray"]:
                raise ValueError(
                    f"{mark['stray']} is not part of a {{column}}; "
                    f"close the braces, or write {mark['stray'] * 2} for the brace itself"
                )
            if mark["brace"]:
                literal += mark["brace"][0]
            else:
                pieces.append((literal, mark["column"]))
                literal = ""
        return cls((*pieces, (literal + text[done:], None)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns named, in order, each once."""
        return tuple(dict.fromkeys(column for _, column in self.pieces if column is not None))

    def fill(self, values: Mapping[str, Any]) -> str:
        """The prompt for one row. Raises ``RowError``: PROMPT_NULL (a null value), PROMPT_EMPTY (no text)."""
        filled = ""
        for literal, column in self.pieces:
            filled += literal
            if column is None:
                continue
            value = values[column]
            if value is None:
                raise RowError("PROMPT_NULL", f"column {column} is null in this row, and the prompt needs it")
            filled += str(value)
        if not filled.strip():
            raise RowError("PROMPT_EMPTY", "the prompt is empty once this row's columns are filled in")
        return filled
