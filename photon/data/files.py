"""Input files by name: patterns expanded in natural order, opened, and blamed by name when they cannot be read."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from photon.data.hf import pin
from photon.data.patience import patiently
from photon.data.refused import Refused
from photon.errors import InputError, PhotonError, UsageError


def expand(patterns: Sequence[str]) -> list[str]:
    """The files that ``patterns`` name: pattern by pattern, in natural order within each (part-2 before part-10).

    A pattern is a path, a glob (``**`` for any depth) or a URL that fsspec knows, with or without a glob. An hf:// URL
    needs a revision, and comes back with its commit. A file that two patterns name comes once. Raises ``UsageError``
    for a pattern that matches nothing, ``InputError`` where a remote place cannot be listed.
    """
    found: dict[str, str] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        for name in _expand_remote(pattern) if is_remote(pattern) else _expand_local(pattern):
            found.setdefault(name if is_remote(name) else os.path.abspath(name), name)
    if not found:
        raise UsageError("the input names no files")
    return list(found.values())


def is_remote(name: str) -> bool:
    return "://" in name


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever goes wrong inside is an ``InputError`` that names the file."""
    try:
        yield
    except (PhotonError, MemoryError):
        raise
    except Exception as error:
        advice = "check that it is complete and readable, or leave it out of the input"
        raise InputError(f"cannot read {name}: {error} ({type(error).__name__}); {advice}") from error


def open_remote(name: str) -> IO[bytes]:
    """A seekable file that fetches what is read of it."""
    fs, path = _filesystem(name)
    file: IO[bytes] = patiently(lambda: fs.open(path, "rb"), name)
    return file


def remote_picture(name: str) -> bytes | Refused:
    """The picture at a place that the input itself named. Raises ``InputError`` where that cannot be reached."""
    with reading(name):
        try:
            return read_remote(name)
        except FileNotFoundError as error:
            return Refused("IMAGE_MISSING", f"{name:.300}: {error}")


def read_remote(name: str) -> bytes:
    """A remote file whole, asked for again while its server is busy."""

    def read() -> bytes:
        fs, path = _filesystem(name)
        with fs.open(path, "rb") as file:
            data: bytes = file.read()
        return data

    return patiently(read, name)


def natural(name: str) -> tuple[list[str | int], str]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)], name


def _expand_local(pattern: str) -> list[str]:
    pattern = os.path.normpath(os.path.expanduser(pattern))
    if os.path.isfile(pattern):  # a plain name, be there brackets in it
        return [pattern]
    if os.path.isdir(pattern):
        raise UsageError(f"{pattern} is a folder: name the files in it, for example {os.path.join(pattern, '*')!r}")
    names = sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)), key=natural)
    if not names:
        what = "no file matches" if glob.has_magic(pattern) else "there is no file"
        raise UsageError(f"{what} {pattern!r} (from {os.getcwd()}): correct the path in the input")
    return names


def _expand_remote(pattern: str) -> list[str]:
    with reading(pattern):
        if pattern.startswith("hf://"):
            pattern = pin(pattern)
        if not glob.has_magic(pattern):
            return [pattern]
        fs, path = _filesystem(pattern)
        found = patiently(lambda: fs.glob(path), pattern)
        names = sorted((str(fs.unstrip_protocol(name)) for name in found), key=natural)
    if not names:
        raise UsageError(f"nothing matches {pattern!r}: correct the URL in the input")
    return names


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:  # a protocol that needs a package, or that does not exist
        raise UsageError(f"cannot open {url!r}: {error}") from error
