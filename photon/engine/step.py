"""One launch in a slot, from launch to commit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from photon.device.device import Event
from photon.engine.record import Span
from photon.engine.rows import Ints
from photon.engine.sequence import Picture, Sequence
from photon.engine.slots import Slot
from photon.engine.work import Kind


@dataclass(eq=False, slots=True)
class Step:
    """Its events, in the order of their launch: ``staged`` (the upload of its inputs) and ``forward``; once it is
    finalized and samples, ``controls`` (a second upload), ``sampled`` and ``copied``, the read-back.

    ``sequences`` are the rows in order, zombies included, at ``rows`` of the table; ``pictures`` what a vision step
    encodes, or whose prefix a prefill computes. ``launch`` and ``finalize`` are the host's time for them.
    """

    kind: Kind
    slot: Slot
    launch: Span
    staged: Event
    forward: Event
    sequences: list[Sequence] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    controls: Event | None = None
    sampled: Event | None = None
    copied: Event | None = None
    finalize: Span | None = None

    @property
    def event(self) -> Event:
        """What commit waits for: the forward's own for a vision step, else the read-back of its samples."""
        return self.copied or self.forward

    @property
    def masks_known(self) -> bool:
        """Whether no row's mask needs a sample that is still in flight: it hangs on no token, or none is missing."""
        return not any(s.held and s.inflight_refs > 1 for s in self.sequences)
