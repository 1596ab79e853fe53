"""What is kept of a picture that could not be read: its beginning, for whoever wants to know what it was."""

from __future__ import annotations

import os

#: Bytes of a broken picture that are kept at most.
MOST = 1 << 20


def sample_of(source: object) -> bytes | None:
    """The first MiB of the encoded bytes; None where there are none to be had."""
    if isinstance(source, bytes):
        return source[:MOST]
    if not isinstance(source, (str, os.PathLike)) or not os.path.isfile(source):
        return None
    try:
        with open(source, "rb") as file:
            return file.read(MOST)
    except OSError:
        return None
