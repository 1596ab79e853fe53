"""What a row holds in place of something that cannot be had. The row goes on its way, and fails with a code."""

from __future__ import annotations

import os
from dataclasses import dataclass

from photon.errors import ImageError


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In place of a cell's value: ``reason`` says why there is none, for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused(os.PathLike[str]):
    """In place of a picture's path: whoever opens it gets the ``ImageError`` that it stands for.

    So a source need not know who will ask for the picture, nor they how it was to be had. ``url`` is where the picture
    would be fetched from, if the input said so.
    """

    code: str
    message: str
    url: str | None = None

    def __fspath__(self) -> str:
        raise ImageError(self.code, self.message)
