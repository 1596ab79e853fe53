"""What is wrong with a manifest: the place, the key and the remedy, one line each, told all at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from photon.errors import UsageError

KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """``path`` leads to the key; ``message`` says what is wrong and, after a semicolon, what to do about it.

    ``origin`` names the override that gave the value, which then has no line in the file.
    """

    path: KeyPath
    message: str
    line: int | None = None
    origin: str | None = None

    @property
    def key(self) -> str:
        """The path as people write it: ``tasks.0.objects``; empty for the file as a whole."""
        return ".".join(str(part) for part in self.path)

    def told(self, file: str) -> str:
        """``file:line: key: message``, without the parts that are not known; ``origin: key: message``."""
        place = self.origin or (file if self.line is None else f"{file}:{self.line}")
        key = "" if place == f"--set {self.key}" else self.key
        return ": ".join(part for part in (place, key, self.message) if part)


class ManifestError(UsageError):
    """A manifest that cannot be used. ``problems`` are in the order of the file's lines, those of overrides last."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = sorted(set(problems), key=lambda p: (p.origin or "", p.line or 0, p.key, p.message))
        lines = [problem.told(file) for problem in self.problems]
        if len(lines) > 1:
            lines = [f"{file}: {len(lines)} things to mend", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))


def nearest(name: str, known: Sequence[str]) -> str:
    """The remedy for a wrong name: the likeliest right one, else all of them."""
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known here: {', '.join(known)}" if known else "there are none here"
