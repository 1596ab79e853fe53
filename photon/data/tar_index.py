"""Where the members of a tar lie, found by its headers alone, and grouped into samples as WebDataset does.

A member "a/0001.left.png" is the part "left.png" of the sample "a/0001". Members of one sample follow each other. What
is not a plain file, or has a name without such a key (hidden files), is left out, and counted.
"""

from __future__ import annotations

import re
import sys
import tarfile
from dataclasses import dataclass
from typing import IO, NamedTuple

from photon.errors import UsageError

_NAME = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)")
_PADDING = 64 << 10
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


class Span(NamedTuple):
    """A member's data, in bytes from the start of the tar."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """``parts``: where each member lies, by its name after the key, in lower case."""

    key: str
    parts: dict[str, Span]


def index_tar(file: IO[bytes], name: str) -> tuple[list[Sample], int]:
    """The samples of an open tar in order, and how many members were left out. ``name`` is for messages.

    Raises ``UsageError`` for a compressed tar, in which nothing can be found by its place, ``tarfile.TarError`` or
    ``ValueError`` for a broken one.
    """
    if file.read(6).startswith(_COMPRESSED):
        raise UsageError(f"{name} is compressed, so its members cannot be read one by one: decompress it first")
    file.seek(0)
    samples: list[Sample] = []
    left_out = 0
    with tarfile.open(fileobj=file, mode="r:", errors="backslashreplace") as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # else every header is kept
            named = _NAME.fullmatch(member.name)
            if named is None or not member.isreg():
                left_out += not member.isdir()
                continue
            if member.issparse():
                raise ValueError(f"member {member.name!r} is sparse: pack the tar without --sparse")
            key, part = named[1], sys.intern(named[2].lower())
            # A part that comes again starts a sample of its own: nothing is dropped.
            if not samples or samples[-1].key != key or part in samples[-1].parts:
                samples.append(Sample(key, {}))
            samples[-1].parts[part] = Span(member.offset_data, member.size)
        file.seek(tar.offset)
        _check_end(file.read(_PADDING))
    return samples, left_out


def _check_end(rest: bytes) -> None:
    """Raise ``ValueError`` for what ``tarfile`` takes for an end in silence: a header that is cut off or broken, no end
    mark, or a second tar behind it."""
    if len(rest) < tarfile.BLOCKSIZE or any(rest[: tarfile.BLOCKSIZE]):
        raise ValueError("it is cut short or broken: its last member is not followed by an end mark")
    if any(rest):
        raise ValueError("there is more behind its end: unpack tars that were joined, and pack them as one")
