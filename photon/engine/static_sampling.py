"""Sampling in shapes that hang on the number of rows alone, for capture: every head is asked about every row, and what
a row did not demand is left out. The rules are ``sampling``'s; nothing is drawn here.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from photon.engine.rows import Ints
from photon.engine.sampling import Sampler, Samples, ban, landing_of, pick
from photon.models.moondream import COORDINATE, SIZE, TOKEN
from photon.skills.grammar import Want

Heads: TypeAlias = Literal["text", "grounded", "mixed"]
"""Which heads are asked: the vocabulary's; the decision, coordinates and sizes; all."""
HEADS: tuple[Heads, ...] = ("text", "grounded", "mixed")
_GROUNDED = Want.DECIDE | Want.COORDINATE | Want.SIZE


def heads_for(wants: Ints) -> Heads:
    """The fewest that serve rows of these ``Want`` bits."""
    if not (wants & _GROUNDED).any():
        return "text"
    return "mixed" if (wants & Want.TOKEN).any() else "grounded"


class StaticSampler:
    def __init__(self, sampler: Sampler) -> None:
        self._rules, self._model = sampler, sampler.model

    def __call__(self, hidden: Tensor, demand: Tensor, heads: Heads) -> Samples:
        """``hidden`` [rows, dim], before the last norm; ``demand`` int64 [rows, 4], the columns of ``Demand``."""
        want, tokens = demand[:, 0], demand[:, 1]
        bins = torch.zeros(len(want), 2, dtype=torch.int64, device=hidden.device)
        scores = torch.ones(len(want), 2, dtype=torch.float32, device=hidden.device)
        p_end = torch.zeros(len(want), dtype=torch.float32, device=hidden.device)
        values = torch.zeros(len(want), 2, dtype=torch.float32, device=hidden.device)
        if heads != "grounded":
            logits = self._model.text.logits(hidden).float()
            ban(logits, demand[:, 2:])
            tokens = torch.where((want & Want.TOKEN) != 0, logits.argmax(dim=-1), tokens)
        if heads != "text":
            stop, ending = self._rules.decide(hidden)
            decides = (want & Want.DECIDE) != 0
            tokens = torch.where(decides, torch.where(stop, self._rules.end, self._rules.coord), tokens)
            p_end = torch.where(decides, ending, p_end)
        kinds = torch.full_like(tokens, TOKEN)
        if heads != "text":
            found, mass = pick(self._model.region.coordinate_logits(hidden))
            point = (want & Want.COORDINATE) != 0
            kinds = torch.where(point & (tokens == self._rules.coord), COORDINATE, kinds)
            bins = torch.where(point[:, None], _before(found, 0), bins)
            scores = torch.where(point[:, None], _before(mass, 1.0), scores)
            values = torch.where(point[:, None], _before(self._rules.coordinates[found], 0.0), values)
            found, mass = pick(self._model.region.size_logits(hidden))
            box = ((want & Want.SIZE) != 0) & (tokens == self._rules.size)
            kinds = torch.where(box, SIZE, kinds)
            bins = torch.where(box[:, None], found, bins)
            scores = torch.where(box[:, None], mass, scores)
            values = torch.where(box[:, None], self._rules.sizes[found], values)
        return Samples(tokens, kinds, values, landing_of(tokens, bins, torch.cat((p_end[:, None], scores), dim=1)))


def _before(column: Tensor, rest: float) -> Tensor:
    """[n] as the first of two columns, the second being ``rest``."""
    return F.pad(column[:, None], (0, 1), value=rest)
