"""One launch in a slot, from launch to commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from photon.device.device import Event
from photon.engine.scheduler import Kind
from photon.engine.sequence import Picture, Sequence
from photon.engine.slots import Slot
from photon.skills.grammar import MaskKind


@dataclass(eq=False, slots=True)
class Step:
    """``event``: what commit waits for; the forward's own for a vision step, else the read-back of its samples.

    ``sequences`` are the rows in order, zombies included; ``pictures`` what a vision step encodes.
    """

    kind: Kind
    slot: Slot
    event: Event
    sequences: list[Sequence] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @property
    def masks_known(self) -> bool:
        """Whether no row's mask needs a sample that is still in flight: it hangs on no token, or none is missing."""
        return all(s.script.grammar.mask is not MaskKind.GRAMMAR or s.inflight_refs == 1 for s in self.sequences)
