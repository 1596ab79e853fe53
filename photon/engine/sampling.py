"""Hidden states to the next tokens, coordinates and sizes, on the device and with static shapes.

Greedy is the argmax. Drawing is Gumbel-max: argmax(log p + g) with g = -log(-log u) is distributed as p; u comes from
a counter-based hash of (seed, position, token id) alone, so that neighbours in the batch do not change an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from photon.core import Settings
from photon.engine.rows import Ints, RowTable
from photon.engine.slots import Arena
from photon.models.moondream import COORDINATE, SIZE, TOKEN, Moondream
from photon.skills.grammar import NOBODY, Want
from photon.skills.skill import Decision

_MOST_IDS = 1 << 24
"""More than any vocabulary has, and what float32 counts to exactly."""
LOC_WINDOW = 4
"""Bins on either side of the chosen one whose probability counts towards ``score_loc``."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Those of the free rows that are drawn, m of them: ``at`` their places among the n; ``seeds``, ``positions``
    [m]; ``draws`` [m, 3] temperature, top-p and top-k; ``cut`` whether any of the last two leaves something out."""

    at: Tensor
    seeds: Tensor
    positions: Tensor
    draws: Tensor
    cut: bool


@dataclass(slots=True, eq=False)
class SamplePlan:
    """What a step's ``count`` rows demand, as device tensors.

    ``table_rows``, ``forced`` [count]. ``token_at`` [n], ``decide_at``, ``coordinate_at``, ``size_at``: places of the
    rows that demand it. Of the n free rows, ``bans`` [n, 2] ids or NOBODY, None where nobody bans.
    """

    count: int
    table_rows: Tensor
    forced: Tensor
    token_at: Tensor
    decide_at: Tensor
    coordinate_at: Tensor
    size_at: Tensor
    bans: Tensor | None
    drawn: Drawn | None


class Samples(NamedTuple):
    """``tokens``, ``kinds`` [rows] and ``values`` [rows, 2] are fed next; ``landing`` [rows, 6] goes to the host."""

    tokens: Tensor
    kinds: Tensor
    values: Tensor
    landing: Tensor


def draw_row(settings: Settings) -> npt.NDArray[np.float32]:
    """A request's temperature, top-p and top-k as the sampler takes them, float32 [3]. A temperature beyond float32 is
    infinite there, and as good: ``draw`` bounds it."""
    with np.errstate(over="ignore"):
        return np.array((settings.temperature, settings.top_p, min(settings.top_k, _MOST_IDS))).astype(np.float32)


def noise_seed(seed: int) -> int:
    """Wrapped to 64 bits with a sign."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


def plan_samples(table: RowTable, rows: Ints, controls: Arena, weights: Arena) -> SamplePlan:
    """Stage what the table's ``rows`` demand now. Finalized rows demand nothing."""
    demand = table.demand[rows]
    want = demand[:, 0]
    token_at = (want & Want.TOKEN).nonzero()[0]
    bans = demand[token_at, 2:]
    decide_at, coordinate_at, size_at = ((want & bit).nonzero()[0] for bit in (Want.DECIDE, Want.COORDINATE, Want.SIZE))
    placed = controls.place(rows, demand[:, 1], token_at, decide_at, coordinate_at, size_at)
    return SamplePlan(
        count=len(rows),
        table_rows=placed[0],
        forced=placed[1],
        token_at=placed[2],
        decide_at=placed[3],
        coordinate_at=placed[4],
        size_at=placed[5],
        bans=controls.place(bans)[0] if (bans != NOBODY).any() else None,
        drawn=_plan_draws(table, rows[token_at], controls, weights),
    )


def _plan_draws(table: RowTable, rows: Ints, controls: Arena, weights: Arena) -> Drawn | None:
    """``rows`` are the free ones."""
    at = table.draw[rows, 0].nonzero()[0]
    if not len(at):
        return None
    drawn = rows[at]
    draws = table.draw[drawn]
    places, seeds, positions = controls.place(at, table.seed[drawn], table.length[drawn])
    return Drawn(
        places, seeds, positions, weights.place(draws)[0], cut=bool(((draws[:, 1] < 1) | (draws[:, 2] > 0)).any())
    )


class Sampler:
    """The model's heads and the decision rule. ``coordinates`` [bins], ``sizes`` [bins]: float32 value of every bin."""

    def __init__(
        self, model: Moondream, decision: Decision, ids: tuple[int, int, int], coordinates: Tensor, sizes: Tensor
    ) -> None:
        """``ids``: end, coordinate, size."""
        self.model = model
        self._decision = decision
        self.end, self.coord, self.size = ids
        self.candidates = torch.tensor([self.end, self.coord], device=coordinates.device)
        self.coordinates, self.sizes = coordinates, sizes

    def __call__(self, hidden: Tensor, plan: SamplePlan) -> Samples:
        """``hidden`` [rows, dim], before the last norm."""
        rows = plan.count
        tokens = plan.forced.clone()
        bins = torch.zeros(rows, 2, dtype=torch.int64, device=hidden.device)
        scores = torch.ones(rows, 3, dtype=torch.float32, device=hidden.device)  # p_end, mass, mass
        scores[:, 0] = 0
        values = torch.zeros(rows, 2, dtype=torch.float32, device=hidden.device)
        if plan.token_at.numel():
            tokens[plan.token_at] = self._choose(self.model.text.logits(hidden[plan.token_at]).float(), plan)
        if plan.decide_at.numel():
            stop, p_end = self.decide(hidden[plan.decide_at])
            tokens[plan.decide_at] = torch.where(stop, self.end, self.coord)
            scores[plan.decide_at, 0] = p_end
        kinds = torch.full_like(tokens, TOKEN)
        if plan.coordinate_at.numel():
            at = plan.coordinate_at
            found, mass = pick(self.model.region.coordinate_logits(hidden[at]))
            here = tokens[at] == self.coord
            kinds[at] = torch.where(here, COORDINATE, kinds[at])
            bins[at, 0], scores[at, 1] = found, mass
            values[at, 0] = self.coordinates[found]
        if plan.size_at.numel():
            at = plan.size_at
            found, mass = pick(self.model.region.size_logits(hidden[at]))
            here = (tokens[at] == self.size)[:, None]
            kinds[at] = torch.where(here[:, 0], SIZE, kinds[at])
            bins[at] = torch.where(here, found, bins[at])
            scores[at, 1:] = torch.where(here, mass, scores[at, 1:])
            values[at] = torch.where(here, self.sizes[found], values[at])
        return Samples(tokens, kinds, values, landing_of(tokens, bins, scores))

    def _choose(self, logits: Tensor, plan: SamplePlan) -> Tensor:
        """Token for each free row of ``logits`` [n, vocabulary]."""
        if plan.bans is not None:
            ban(logits, plan.bans)
        chosen = logits.argmax(dim=-1)
        if (drawn := plan.drawn) is not None:
            chosen[drawn.at] = draw(logits[drawn.at], drawn.draws, drawn.seeds, drawn.positions, cut=drawn.cut)
        return chosen

    def decide(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """At an object boundary: whether to end, and the end's probability among the candidates. A tie goes on.

        Between two candidates, two rows of the head do: the whole vocabulary is most of a small step's weights.
        """
        if self._decision == "reference":
            logits = self.model.text.logits(hidden).float()
            return logits.argmax(dim=-1) == self.end, logits.softmax(dim=-1)[:, self.end]
        end, coordinate = self.model.text.logits(hidden, self.candidates).unbind(-1)
        return end > coordinate, (end - coordinate).sigmoid()


def landing_of(tokens: Tensor, bins: Tensor, scores: Tensor) -> Tensor:
    """What goes to the host, float64 [rows, 6]: ids [rows], ``bins`` [rows, 2], ``scores`` [rows, 3] as in
    ``skills.grammar.Sample``."""
    return torch.cat((tokens[:, None], bins, scores), dim=1).double()


def ban(logits: Tensor, bans: Tensor) -> None:
    """Take each row's ``bans`` [n, 2], ids or NOBODY, out of ``logits`` [n, vocabulary]."""
    ids = bans.clamp_min(0)
    logits.scatter_(1, ids, logits.gather(1, ids).masked_fill(bans >= 0, float("-inf")))


def pick(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest bin along the last axis, and the probability within LOC_WINDOW bins of it."""
    last = logits.shape[-1] - 1
    found = logits.argmax(dim=-1)
    cumulative = logits.float().softmax(dim=-1).cumsum(dim=-1)
    upper = cumulative.gather(-1, (found + LOC_WINDOW).clamp_max(last)[..., None])[..., 0]
    below = found - LOC_WINDOW - 1
    lower = cumulative.gather(-1, below.clamp_min(0)[..., None])[..., 0]
    return found, (upper - lower.where(below >= 0, torch.zeros_like(lower))).clamp(0, 1)


def draw(logits: Tensor, draws: Tensor, seeds: Tensor, positions: Tensor, *, cut: bool) -> Tensor:
    """Draw ids [n] from softmax(logits / temperature); ``draws`` [n, 3] holds each row's temperature, top-p and top-k.

    Temperatures beyond 1/1000 and 1000 act like these: as good as greedy, and as good as uniform. Without ``cut`` the
    last two are not looked at.
    """
    scores = (logits / draws[:, :1].clamp(1e-3, 1e3)).log_softmax(dim=-1)
    if cut:
        scores = _cut(scores, top_p=draws[:, 1:2], top_k=draws[:, 2:])
    return (scores + gumbel(seeds, positions, scores.shape[-1])).argmax(dim=-1)


def _cut(scores: Tensor, *, top_p: Tensor, top_k: Tensor) -> Tensor:
    """Log-probabilities [n, vocabulary] of the top-k likeliest (0: all), and of these up to a cumulative mass of top-p,
    as the reference cuts; minus infinity elsewhere. Of equals the lower id goes first. Rows with neither stay whole."""
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(scores.shape[-1], device=scores.device)
    beyond = (top_k > 0) & (rank >= top_k)
    mass = ordered.masked_fill(beyond, float("-inf")).softmax(dim=-1)
    beyond |= (top_p < 1) & (mass.cumsum(dim=-1) - mass > top_p)
    return scores.masked_fill(torch.zeros_like(beyond).scatter_(1, order, beyond), float("-inf"))


def gumbel(seeds: Tensor, positions: Tensor, tokens: int) -> Tensor:
    """Standard Gumbel noise float32 [n, tokens], a function of (seed, position, token id) alone."""
    ids = torch.arange(tokens, dtype=torch.int64, device=seeds.device)
    stream = _mix(_mix(seeds) ^ positions)
    mixed = _mix(stream[:, None] ^ ids)
    uniform = ((mixed >> 8) & 0xFFFFFF).double().add(0.5).div(1 << 24)
    return uniform.log().neg().log().neg().float()


def _mix(x: Tensor) -> Tensor:
    """A 64-bit finaliser (xor-shift and multiply, wrapping): every input bit reaches every output bit."""
    x = x + (0x9E3779B97F4A7C15 - (1 << 64))
    x = (x ^ _shift(x, 30)) * (0xBF58476D1CE4E5B9 - (1 << 64))
    x = (x ^ _shift(x, 27)) * (0x94D049BB133111EB - (1 << 64))
    return x ^ _shift(x, 31)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift: torch's own keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
