"""A stand-in for ``engine.forward.Forward``: operations that take the profile's time and land scripted answers.

The engine cannot tell: it sees a token for the first time when it reads the landing buffer at commit.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import torch

from photon.device.device import Operation
from photon.engine.forward import Forward
from photon.engine.rows import Ints
from photon.engine.sequence import Picture, Sequence
from photon.engine.slots import Slot
from photon.engine.work import Work
from photon.sim.profile import Profile


@dataclass(frozen=True, slots=True)
class Answer:
    """A simulated request's id: its ``number``, and the ``tokens`` that the model will sample, the end included."""

    number: int
    tokens: tuple[int, ...]

    def landing(self, nth: int) -> list[float]:
        """The landing row of the ``nth`` sample, from 1. A zombie samples on after the end."""
        return [float(self.tokens[min(nth, len(self.tokens)) - 1]), float(nth % 1024), 512.0, 0.0, 1.0, 1.0]


def _nothing() -> None:
    """The work of an operation that only takes time."""


class ScriptedForward(Forward):
    def __init__(self, profile: Profile, prefix_len: int) -> None:
        """Has no model: the parent's set-up is left out on purpose, and every public method is replaced."""
        self._profile = profile
        self._prefix_len = prefix_len
        self._outcomes: dict[Slot, list[list[float]]] = {}

    def upload_crops(self, slot: Slot, pictures: Seq[Picture]) -> Operation:
        return Operation(_nothing, seconds=self._profile.upload_crops(_crops(pictures)))

    def vision(self, slot: Slot, pictures: Seq[Picture]) -> Operation:
        return Operation(_nothing, seconds=self._profile.vision(_crops(pictures), len(pictures)))

    def prefill(self, slot: Slot, work: Work, entries: Seq[int], rows: Ints) -> Operation:
        width = max(len(sequence.script.prompt.ids) for sequence in work.sequences)
        tokens = len(work.prefixes) * self._prefix_len + len(work.sequences) * width
        self._script(slot, work.sequences)
        return Operation(_nothing, seconds=self._profile.prefill(tokens, len(work.sequences)))

    def decode(self, slot: Slot, sequences: Seq[Sequence], rows: Ints) -> Operation:
        self._script(slot, sequences)
        return Operation(_nothing, seconds=self._profile.forward(len(sequences)))

    def sample(self, slot: Slot, rows: Ints) -> Operation:
        return Operation(_nothing, seconds=self._profile.sampling(len(rows)))

    def read_back(self, slot: Slot, count: int) -> Operation:
        outcomes = self._outcomes[slot]

        def run() -> None:
            slot.landed[:count] = torch.tensor(outcomes, dtype=torch.float64)

        return Operation(run, seconds=self._profile.copy)

    def _script(self, slot: Slot, sequences: Seq[Sequence]) -> None:
        """What the step in ``slot`` will sample. ``samples`` does not count this step yet."""
        rows: list[list[float]] = []
        for sequence in sequences:
            assert isinstance(sequence.request.id, Answer)
            rows.append(sequence.request.id.landing(sequence.samples + 1))
        self._outcomes[slot] = rows


def _crops(pictures: Seq[Picture]) -> int:
    return sum(len(picture.prepared.content.pixels) for picture in pictures)
