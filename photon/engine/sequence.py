"""A request inside the engine, and the picture that it asks about.

Both are plain state with reference counts. Who counts and who frees is the scheduler's: one place each.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from photon.core import Request, Timings
from photon.engine.intake import Prepared
from photon.skills.grammar import MaskKind
from photon.skills.skill import Script


@dataclass(eq=False, slots=True)
class Picture:
    """One image in the engine.

    ``waiting``: its requests that have not been launched; while there are any, the prefix holds a reference of its
    own. ``users``: its sequences that hold a row, and the vision step that encodes it. ``embedding``: its entry in the
    pool of image tokens, from the launch of its vision step to the launch of its prefill. ``prefix``: its place in the
    row table, with its ``pages``.
    """

    prepared: Prepared
    waiting: deque[Sequence] = field(default_factory=deque)
    users: int = 0
    embedding: int | None = None
    prefix: int | None = None
    pages: list[int] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Sequence:
    """A request with its grammar, its row and its pages.

    ``samples`` counts launched samples, ``committed`` those taken in; ``max_samples`` bounds both, so that a sequence
    whose count ends it is not launched again. ``held``: its mask needs the last sample. ``finalized``: its result is
    out. ``inflight_refs``: steps that hold it.
    """

    request: Request
    script: Script
    picture: Picture | None
    submitted: float
    prepared: float
    max_samples: int
    pages_needed: int
    held: bool = field(init=False)
    row: int = -1
    pages: list[int] = field(default_factory=list)
    samples: int = 0
    committed: int = 0
    inflight_refs: int = 0
    finalized: bool = False
    started: float = 0.0

    def __post_init__(self) -> None:
        self.held = self.script.grammar.mask is MaskKind.GRAMMAR

    def timings(self) -> Timings:
        return Timings(self.submitted, self.prepared, self.started, time.monotonic())
