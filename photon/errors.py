"""What can go wrong, as a tree; each branch carries the exit code that a run ends with.

PhotonError
├── UsageError       exit 2   wrong manifest, arguments, model or settings, or memory too small for them
│   └── DeviceMemoryError     the device's memory ran out under way
├── InputError       exit 4   the input cannot be reached
├── OutputError      exit 5   the output cannot be written, or is not ours
├── EngineError      exit 70  the engine cannot go on
│   └── StallError   nothing is finished any more
└── RowError         no exit: one row or request fails with ``code``, the run goes on
    └── ImageError   the picture is missing, broken or too large

Nothing here knows how an error is printed.
"""

from __future__ import annotations


class PhotonError(Exception):
    """Base of every error that we raise on purpose."""

    exit_code = 1


class UsageError(PhotonError):
    exit_code = 2


class InputError(PhotonError):
    exit_code = 4


class OutputError(PhotonError):
    exit_code = 5


class DeviceMemoryError(UsageError):
    """The device's memory ran out under way; a smaller batch may fit."""


class EngineError(PhotonError):
    exit_code = 70


class StallError(EngineError):
    """Its notes hold the stack of every thread."""


class RowError(PhotonError):
    """One row's failure. ``code`` is stable and upper case; the message is for people. ``sample``: the beginning of
    the bytes that could not be read."""

    def __init__(self, code: str, message: str, sample: bytes | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.sample = sample


class ImageError(RowError):
    """Codes: IMAGE_MISSING, IMAGE_EMPTY, IMAGE_UNIDENTIFIED, IMAGE_TRUNCATED, IMAGE_TOO_LARGE, IMAGE_UNREADABLE,
    IMAGE_UNREACHABLE (at its URL); CELL_UNREADABLE where not the picture but a cell beside it is what cannot be had."""
