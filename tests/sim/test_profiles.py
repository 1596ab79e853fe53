"""The profiles: what is fitted is met exactly, and a figure has its costs beside it."""

from __future__ import annotations

import pytest

from photon.errors import UsageError
from photon.sim.profile import load_profile, profile_names


def test_the_four_cards_are_there() -> None:
    assert profile_names() == ["3090", "b200", "h100", "h200"]


@pytest.mark.parametrize("name", ["3090", "b200"])
def test_fitted_costs_meet_the_published_figures_they_were_fitted_to(name: str) -> None:
    profile = load_profile(name)
    assert profile.basis == "published"
    assert profile.published is not None
    for streams in (1, 32):
        assert 1e3 * profile.decode(streams) == pytest.approx(profile.published.pipelined[streams])
        blocking = profile.decode(streams) + profile.between(streams)
        assert 1e3 * blocking == pytest.approx(profile.published.blocking[streams])


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_what_is_estimated_says_so(name: str) -> None:
    profile = load_profile(name)
    assert profile.basis == "estimated"
    assert profile.published is None


@pytest.mark.parametrize("name", ["3090", "b200", "h100", "h200"])
def test_no_cost_is_below_what_the_card_can_do(name: str) -> None:
    profile = load_profile(name)
    assert 0 < profile.efficiency < 1
    for rows in (1, 32, 64):
        moved = profile.weight_bytes + rows * profile.row_bytes
        assert profile.forward(rows) + profile.sampling(rows) == pytest.approx(profile.decode(rows))
        assert profile.decode(rows) > moved / profile.bandwidth
    assert profile.vision(9, 1) > 9 * profile.crop_flop / profile.flops
    assert profile.prefill(740, 1) > 740 * profile.token_flop / profile.flops


def test_an_unknown_card_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no profile 'h20'; did you mean h200\?"):
        load_profile("h20")
