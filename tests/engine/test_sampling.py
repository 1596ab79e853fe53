"""The decision rules and the draws against closed forms."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from photon.core import Settings
from photon.engine.sampling import LOC_WINDOW, SamplePlan, Sampler, _cut, draw, draw_row, gumbel, noise_seed, pick
from photon.skills.grammar import Want

END, COORD, SIZE = 0, 5, 6


def ints(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def plan(wants: list[int], **changes: Any) -> SamplePlan:
    values: dict[str, Any] = {
        "count": len(wants),
        "table_rows": ints(range(len(wants))),
        "forced": ints([COORD if want == Want.COORDINATE else SIZE if want == Want.SIZE else 0 for want in wants]),
        "token_at": ints([i for i, want in enumerate(wants) if want & Want.TOKEN]),
        "bans": None,
        "drawn": None,
        "decide_at": ints([i for i, want in enumerate(wants) if want & Want.DECIDE]),
        "coordinate_at": ints([i for i, want in enumerate(wants) if want & Want.COORDINATE]),
        "size_at": ints([i for i, want in enumerate(wants) if want & Want.SIZE]),
    }
    return SamplePlan(**{**values, **changes})


def sampler(logits: Tensor, decision: Any = "masked") -> Sampler:
    """A model whose hidden state i is the number i, and whose heads look its outcome up."""

    def rows(hidden: Tensor) -> Tensor:
        return hidden[:, 0].long()

    coordinate = torch.zeros(8, 16)
    size = torch.zeros(8, 2, 16)
    for i in range(8):
        coordinate[i, i + 1] = 50.0
        size[i, 0, i + 2], size[i, 1, i + 3] = 50.0, 50.0
    region = SimpleNamespace(
        coordinate_logits=lambda hidden: coordinate[rows(hidden)], size_logits=lambda hidden: size[rows(hidden)]
    )

    def of(hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        found = logits[rows(hidden)]
        return found.clone() if ids is None else found[:, ids]

    text = SimpleNamespace(logits=of)
    model: Any = SimpleNamespace(text=text, region=region)
    return Sampler(model, decision, (END, COORD, SIZE), torch.arange(16) / 16, torch.arange(16) / 32)


def hidden(rows: int) -> Tensor:
    return torch.arange(rows, dtype=torch.float32)[:, None]


def test_the_decision_at_a_boundary() -> None:
    logits = torch.full((4, 10), -5.0)
    logits[0, [END, COORD]] = torch.tensor([1.0, 3.0])  # go on
    logits[1, [END, COORD]] = torch.tensor([3.0, 1.0])  # end
    logits[2, [END, COORD]] = torch.tensor([2.0, 2.0])  # a tie goes on
    logits[3, [END, COORD, 7]] = torch.tensor([3.0, 1.0, 9.0])  # something else leads: masked ends, reference goes on
    wants = plan([Want.BOUNDARY] * 4)
    masked = sampler(logits)(hidden(4), wants)
    assert masked.tokens.tolist() == [COORD, END, COORD, END]
    p_end = masked.landing[:, 3]
    assert p_end.tolist() == pytest.approx([1 / (1 + math.exp(2)), 1 / (1 + math.exp(-2)), 0.5, 1 / (1 + math.exp(-2))])
    reference = sampler(logits, "reference")(hidden(4), wants)
    assert reference.tokens.tolist() == [COORD, END, END, COORD]  # of equals the lowest id, which is the end
    assert reference.landing[:, 3].tolist() == pytest.approx(logits.softmax(-1)[:, END].tolist())


def test_rows_of_every_kind_in_one_step() -> None:
    logits = torch.full((6, 10), -5.0)
    logits[0, 8] = logits[3, 9] = logits[4, COORD] = logits[5, SIZE] = 5.0
    wants = [Want.TOKEN, Want.COORDINATE, Want.SIZE] + [Want.TOKEN | Want.COORDINATE | Want.SIZE] * 3
    out = sampler(logits)(hidden(6), plan(wants))
    assert out.tokens.tolist() == [8, COORD, SIZE, 9, COORD, SIZE]
    assert out.kinds.tolist() == [0, 1, 2, 0, 1, 2]
    assert out.landing[1, 1:3].tolist() == [2, 0]
    assert out.landing[2, 1:3].tolist() == [4, 5]
    assert out.landing[4, 1].item() == 5
    assert out.landing[5, 1:3].tolist() == [7, 8]
    assert out.values[1].tolist() == [2 / 16, 0]
    assert out.values[2].tolist() == [4 / 32, 5 / 32]
    assert out.values[4, 0].item() == 5 / 16
    assert out.values[5].tolist() == [7 / 32, 8 / 32]


def test_a_token_row_that_says_coordinate_feeds_the_token() -> None:
    logits = torch.zeros(1, 10)
    logits[0, COORD] = 5.0
    assert sampler(logits)(hidden(1), plan([Want.TOKEN])).kinds.tolist() == [0]


def test_a_finalized_row_does_nothing() -> None:
    logits = torch.zeros(2, 10)
    logits[0, 8] = 5.0
    out = sampler(logits)(hidden(2), plan([Want.TOKEN, Want.NOTHING]))
    assert out.tokens.tolist() == [8, 0]
    assert out.landing[1].tolist() == [0, 0, 0, 0, 1, 1]


def test_bans() -> None:
    logits = torch.zeros(3, 10)
    logits[:, 3], logits[:, 4], logits[:, 8] = 9.0, 8.0, 7.0
    bans = ints([[3, 3], [-1, -1], [3, 4]])
    out = sampler(logits)(hidden(3), plan([Want.TOKEN] * 3, bans=bans))
    assert out.tokens.tolist() == [4, 3, 8]


def test_probability_near_the_chosen_bin() -> None:
    logits = torch.randn(5, 64, generator=torch.Generator().manual_seed(1)) * 2
    logits[0, 0] = logits[1, 63] = 20.0
    found, mass = pick(logits)
    assert found.tolist() == logits.argmax(-1).tolist()
    for row in range(5):
        at = int(found[row])
        window = logits[row].softmax(-1)[max(0, at - LOC_WINDOW) : at + LOC_WINDOW + 1]
        assert mass[row].item() == pytest.approx(window.sum().item(), abs=1e-5)


def test_noise_is_standard_gumbel_and_a_function_of_its_arguments() -> None:
    noise = gumbel(ints([1, 1, 2]), ints([0, 1, 0]), 100_000)
    assert noise.mean().item() == pytest.approx(0.57722, abs=0.01)
    assert noise.var().item() == pytest.approx(math.pi**2 / 6, abs=0.02)
    assert torch.equal(gumbel(ints([2]), ints([0]), 50_000)[0], noise[2, :50_000])
    correlation = torch.corrcoef(noise)
    assert correlation.fill_diagonal_(0).abs().max().item() < 0.02


def test_draws_follow_the_softmax() -> None:
    n, logits = 20_000, torch.tensor([2.0, 1.0, 0.0, -1.0, 0.5, 1.5])
    drawn = many(logits, n, temperature=0.7, cut=False)
    agree(drawn, (logits / 0.7).softmax(-1))


def test_the_nucleus_is_the_references() -> None:
    """Ids are dropped when the mass before them, most likely first, exceeds top_p."""
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    for top_p, kept in ((0.3, 1), (0.5, 2), (0.79, 2), (0.81, 3), (1.0, 4)):
        drawn = many(probabilities.log(), 4_000, top_p=top_p)
        assert set(drawn.tolist()) == set(range(kept)), top_p
        agree(drawn, probabilities[:kept] / probabilities[:kept].sum())


def test_the_k_likeliest() -> None:
    """Whatever their order in the vocabulary; 0 keeps all, and so does more than there are."""
    probabilities = torch.tensor([0.05, 0.5, 0.15, 0.3])
    for top_k, kept in ((1, {1}), (2, {1, 3}), (3, {1, 2, 3}), (0, {0, 1, 2, 3}), (9, {0, 1, 2, 3})):
        drawn = many(probabilities.log(), 4_000, top_k=top_k)
        assert set(drawn.tolist()) == kept, top_k
        here = torch.tensor([p if i in kept else 0.0 for i, p in enumerate(probabilities.tolist())])
        agree(drawn, here / here.sum())


def test_of_equals_the_lower_ids_are_the_k_likeliest() -> None:
    assert set(many(torch.zeros(6), 500, top_k=2).tolist()) == {0, 1}


def test_the_nucleus_is_taken_of_the_k_likeliest() -> None:
    """Of 0.5, 0.3 and 0.15 the first two have 0.84 of the mass: with top_p 0.8 the third is left out, whereas it would
    stay among all four, where the first two have 0.8."""
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    assert set(many(probabilities.log(), 2_000, top_p=0.82).tolist()) == {0, 1, 2}
    assert set(many(probabilities.log(), 2_000, top_p=0.82, top_k=3).tolist()) == {0, 1}


def test_rows_are_cut_each_by_its_own() -> None:
    draws = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.4, 0.0], [1.0, 1.0, 0.0]])
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(3, -1)
    seen = [draw(logits, draws, ints([7] * 3), ints([i] * 3), cut=True).tolist() for i in range(200)]
    first, second, third = (set(row) for row in zip(*seen, strict=True))
    assert (first, second, third) == ({0}, {0}, {0, 1, 2, 3})


def test_a_row_that_cuts_nothing_is_left_whole_beside_one_that_does() -> None:
    """Over a real vocabulary, where the running sum of all probabilities rounds to a little more than 1."""
    scores = (torch.randn(2, 51_200, generator=torch.Generator().manual_seed(0)) * 3).log_softmax(-1)
    cut = _cut(scores, top_p=torch.tensor([[1.0], [0.9]]), top_k=torch.zeros(2, 1))
    assert torch.equal(cut[0], scores[0])
    assert cut[1].isinf().any()


def test_settings_of_any_size_reach_the_sampler() -> None:
    assert draw_row(Settings(temperature=0.5, top_p=0.25, top_k=3)).tolist() == [0.5, 0.25, 3.0]
    assert draw_row(Settings(temperature=1e300, top_k=10**400)).tolist() == [math.inf, 1.0, 2.0**24]
    seeds = [0, -1, 7, 2**63 - 1, 2**63, 2**64 + 5, -(2**63) - 1]
    assert [noise_seed(seed) for seed in seeds] == [0, -1, 7, 2**63 - 1, -(2**63), 5, 2**63 - 1]


def many(
    logits: Tensor, n: int, *, temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0, cut: bool = True
) -> Tensor:
    """n draws from the same logits, at positions 0 to n - 1."""
    draws = torch.tensor([[temperature, top_p, top_k]]).expand(n, -1)
    return draw(logits.expand(n, -1), draws, ints([5] * n), torch.arange(n), cut=cut)


def agree(drawn: Tensor, expected: Tensor) -> None:
    """No id's share is further off than 4.5 standard deviations."""
    n = len(drawn)
    shares = torch.bincount(drawn, minlength=len(expected)) / n
    assert ((shares - expected).abs() < 4.5 * (expected * (1 - expected) / n).sqrt() + 1e-9).all()
