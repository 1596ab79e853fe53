"""A request inside the engine, the picture that it asks about, and the prefix that it reads.

All are plain state with reference counts. Who counts and who frees is the scheduler's: one place each.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from photon.core import ImageInfo, Request, Timings
from photon.engine.intake import Prepared
from photon.skills.grammar import MaskKind
from photon.skills.skill import Script


@dataclass(eq=False, slots=True)
class Picture:
    """One image in the engine.

    ``prefixes``: by the adapter that reads it. ``embedding``: its entry in the pool of image tokens, from the launch of
    its vision step to the launch of its prefill, or to its own end where several adapters may ask for one.
    ``encoding``: a vision step holds it.
    """

    prepared: Prepared
    prefixes: dict[str | None, Prefix] = field(default_factory=dict)
    embedding: int | None = None
    encoding: bool = False

    @property
    def wanted(self) -> int:
        """Requests about it that have not been launched."""
        return sum(len(prefix.waiting) for prefix in self.prefixes.values())

    @property
    def held(self) -> bool:
        return self.encoding or not all(prefix.idle for prefix in self.prefixes.values())


@dataclass(eq=False, slots=True)
class Prefix:
    """A picture as one adapter, or the model without any, has read it.

    ``waiting``: its requests that have not been launched; while there are any, it is not given up. ``users``: its
    sequences that hold a row. ``place``: in the row table, with its ``pages``.
    """

    picture: Picture
    waiting: deque[Sequence] = field(default_factory=deque)
    users: int = 0
    place: int | None = None
    pages: list[int] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return not (self.users or self.waiting)


@dataclass(eq=False, slots=True)
class Sequence:
    """A request with its grammar, its row and its pages.

    ``samples`` counts launched samples, ``committed`` those taken in; ``max_samples`` bounds both, so that a sequence
    whose count ends it is not launched again. ``held``: its mask needs the last sample. ``finalized``: its result is
    out. ``inflight_refs``: steps that hold it. ``prefix`` is None for a request without an image; ``adapter`` is its
    slot in the bank, 0 for none.
    """

    request: Request
    script: Script
    prefix: Prefix | None
    submitted: float
    prepared: float
    max_samples: int
    pages_needed: int
    held: bool = field(init=False)
    row: int = -1
    adapter: int = 0
    pages: list[int] = field(default_factory=list)
    samples: int = 0
    committed: int = 0
    inflight_refs: int = 0
    finalized: bool = False
    started: float = 0.0

    def __post_init__(self) -> None:
        self.held = self.script.grammar.mask is MaskKind.GRAMMAR

    @property
    def info(self) -> ImageInfo | None:
        """What is known of its image."""
        return self.prefix.picture.prepared.info if self.prefix is not None else None

    def timings(self) -> Timings:
        return Timings(self.submitted, self.prepared, self.started, time.monotonic())
