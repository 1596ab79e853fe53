"""What an input consists of, as a plan freezes it: files with their groups, and what shows that one has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from photon.errors import UsageError

_LOOKED_AT = 64 << 10


@dataclass(frozen=True, slots=True)
class Stamp:
    """``digest``: 16 hex digits of SHA-256 over a file's first and last 64 KiB; empty where nothing was read of it."""

    size: int
    mtime_ns: int
    digest: str = ""

    def same_as(self, other: Stamp) -> bool:
        """Whether both are of the same content: a copy with another time is, if its ends are the same."""
        if self.size != other.size:
            return False
        return self.mtime_ns == other.mtime_ns or (bool(self.digest) and self.digest == other.digest)


@dataclass(frozen=True, slots=True)
class Unit:
    """One file of the input; a picture in a folder is one too, of one row.

    ``groups``: rows of each of its row groups, None where only reading tells; ``weights``: bytes of each, to tell a
    file that grew from one that was replaced, empty where a format does not say. ``stamp`` is None for what has a
    revision of its own in its name. ``root``: the folder that a picture's ``name`` starts from.
    """

    name: str
    groups: tuple[int, ...] | None
    weights: tuple[int, ...] = ()
    stamp: Stamp | None = None
    root: str = ""

    @property
    def rows(self) -> int | None:
        return None if self.groups is None else sum(self.groups)

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.name)

    def is_same_as(self, old: Unit) -> bool:
        """Whether it is as it was when it was ``old``."""
        if old.stamp is not None and self.stamp is not None and not old.stamp.same_as(self.stamp):
            return False
        return self.groups == old.groups

    def grew_from(self, old: Unit) -> bool:
        """Whether ``old`` is its beginning: the same groups of rows, and further ones after them."""
        if self.groups is None or old.groups is None or len(self.groups) <= len(old.groups) or not self.weights:
            return False
        count = len(old.groups)
        return self.groups[:count] == old.groups and self.weights[:count] == old.weights

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as ``from_dict`` reads them; what is empty is left out."""
        made: dict[str, Any] = {"name": self.name}
        if self.root:
            made["root"] = self.root
        if self.groups != (1,):
            made["groups"] = None if self.groups is None else list(self.groups)
        if self.weights:
            made["weights"] = list(self.weights)
        if self.stamp is not None:
            made["stamp"] = [self.stamp.size, self.stamp.mtime_ns, self.stamp.digest]
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Unit:
        groups, stamp = data.get("groups", (1,)), data.get("stamp")
        return cls(
            data["name"],
            None if groups is None else tuple(groups),
            tuple(data.get("weights", ())),
            None if stamp is None else Stamp(*stamp),
            data.get("root", ""),
        )


def changed(units: Sequence[Unit], *, mendable: bool = False) -> UsageError:
    """What is to be raised about planned ``units`` that are not what they were. ``mendable``: they may be where their
    rows have failed and are asked again."""
    more = f" and {len(units) - 1:,} more" if len(units) > 1 else ""
    anew = "ask pictures whose rows failed again with --retry-failed, " if mendable else ""
    return UsageError(
        f"{units[0].path}{more} changed since the plan was made, so old and new answers would mix; put the file "
        f"back, {anew}choose another output.dir, or start over with --fresh"
    )


def stamp_of(file: str) -> Stamp:
    """Of a local file. Raises ``OSError``."""
    with open(file, "rb", buffering=0) as opened:
        status = os.fstat(opened.fileno())
        ends = hashlib.sha256(opened.read(_LOOKED_AT))
        if status.st_size > _LOOKED_AT:
            opened.seek(max(_LOOKED_AT, status.st_size - _LOOKED_AT))
            ends.update(opened.read(_LOOKED_AT))
    return Stamp(status.st_size, status.st_mtime_ns, ends.hexdigest()[:16])


def glance(file: str) -> Stamp:
    """Of a local file, without opening it. Raises ``OSError``."""
    status = os.stat(file)
    return Stamp(status.st_size, status.st_mtime_ns)
