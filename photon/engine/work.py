"""What a scheduler has chosen to launch next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from photon.engine.sequence import Picture, Prefix, Sequence

Kind = Literal["vision", "prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Work:
    """Vision: ``pictures`` to encode. Prefill: ``prefixes`` to compute, ``sequences`` that start, and the adapters that
    they need in slots where others lay (``loads``: slot and name). Decode: ``sequences`` that go on by one token."""

    kind: Kind
    sequences: list[Sequence] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    prefixes: list[Prefix] = field(default_factory=list)
    loads: list[tuple[int, str]] = field(default_factory=list)
