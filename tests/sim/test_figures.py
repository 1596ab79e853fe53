"""What the simulated loop says against what was published, and what any loop of this kind must obey."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photon.sim.profile import Profile, load_profile
from photon.sim.report import Comparison, compare
from photon.sim.simulate import Simulation
from photon.sim.workload import Mix

PUBLISHED = [("3090", 1, 6.7), ("3090", 8, 7.9), ("3090", 32, 11.6), ("b200", 1, 18.3), ("b200", 8, 22.4),
             ("b200", 32, 39.4)]  # fmt: skip


@cache
def text(name: str, streams: int, inject: str | None = None) -> Comparison:
    return compare(load_profile(name), Mix("text", streams), inject=inject)


def gain(comparison: Comparison) -> float:
    """Per cent, of a decode step."""
    assert comparison.speedup is not None
    return 100 * (comparison.speedup - 1)


@pytest.mark.parametrize(("name", "streams", "published"), PUBLISHED)
def test_the_gain_is_the_published_one(name: str, streams: int, published: float) -> None:
    """Within 3 points; within a tenth where the costs were fitted, which leaves 8 streams as the prediction."""
    comparison = text(name, streams)
    assert gain(comparison) == pytest.approx(published, abs=3)
    if streams != 8:
        assert gain(comparison) == pytest.approx(published, abs=0.1)


@pytest.mark.parametrize(("name", "streams", "published"), PUBLISHED)
def test_a_pipelined_card_stands_still_for_less_than_published(name: str, streams: int, published: float) -> None:
    comparison = text(name, streams)
    assert comparison.pipelined.idle_ms_per_step <= 0.05
    assert comparison.blocking.idle_ms_per_step > 0.3


@pytest.mark.parametrize("name", ["3090", "b200"])
def test_one_stream_pays_one_zombie_an_answer(name: str) -> None:
    comparison = text(name, 1)
    assert 100 * comparison.pipelined.zombie_share == pytest.approx(100 / 110, abs=0.1)
    assert comparison.blocking.zombie_share == 0


@pytest.mark.parametrize("name", ["3090", "b200"])
def test_the_law_gives_the_requests_per_second_of_one_stream(name: str) -> None:
    """A lone stream's zombie is a whole step; among others it costs less, and their prefills stand in between."""
    assert text(name, 1).throughput == pytest.approx(text(name, 1).law, abs=0.002)
    assert text(name, 32).throughput == pytest.approx(text(name, 32).law, abs=0.02)


@pytest.mark.parametrize("streams", [1, 32])
def test_the_gain_grows_with_bandwidth_and_as_the_model_shrinks(streams: int) -> None:
    card = load_profile("3090")

    def gains(profiles: list[Profile]) -> list[float]:
        return [gain(compare(profile, Mix("text", streams, length=20))) for profile in profiles]

    faster = gains([replace(card, bandwidth=card.bandwidth * factor) for factor in (1, 2, 4)])
    smaller = gains([replace(card, weight_bytes=card.weight_bytes * part) for part in (1, 0.5, 0.25)])
    for rising in (faster, smaller):
        assert rising == sorted(rising)
        assert rising[-1] > rising[0] + 0.5


@pytest.mark.parametrize(("name", "streams"), [("3090", 32), ("b200", 1), ("b200", 32)])
def test_a_stray_synchronisation_costs_the_whole_gain(name: str, streams: int) -> None:
    assert gain(text(name, streams, "sync-mask-upload")) == pytest.approx(0, abs=1)
    assert text(name, streams, "sync-mask-upload").throughput == pytest.approx(1, abs=0.01)
    assert gain(text(name, streams)) > 10


@pytest.mark.parametrize("skill", ["detect", "point"])
@pytest.mark.parametrize("crops", [1, 9])
def test_shared_slots_gain_more_than_pipelined_decoding(skill: str, crops: int) -> None:
    mix = Mix("detect" if skill == "detect" else "point", crops=crops)
    comparison = compare(load_profile("b200"), mix)
    assert comparison.throughput_decode_only is not None
    assert 1 < comparison.throughput_decode_only < comparison.throughput
    assert comparison.pipelined.idle_ms_per_step <= 0.05


def test_questions_about_one_image_share_its_encoding() -> None:
    one, five = (compare(load_profile("h200"), Mix("detect", 16, questions=k)).pipelined for k in (1, 5))
    assert five.requests_per_s > 2.5 * one.requests_per_s


MIX = st.builds(
    Mix,
    st.sampled_from(["text", "detect", "point"]),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(1, 4),
    st.sampled_from([1, 2, 9, 13]),
)


@settings(max_examples=25, deadline=None)
@given(mixes=st.lists(MIX, min_size=1, max_size=4), requests=st.integers(1, 20), name=st.sampled_from(["3090", "b200"]))
def test_depth_two_loses_at_most_a_decode_step_a_request(mixes: list[Mix], requests: int, name: str) -> None:
    """And everything comes home, which ``finish`` checks."""
    profile = load_profile(name)
    runs = [Simulation(profile, mixes, depth=depth, limit=requests) for depth in (1, 2)]
    blocking, pipelined = (run.finish(feed=True) for run in runs)
    assert runs[0].answered == runs[1].answered >= requests
    batch = max(mix.streams for mix in mixes)
    assert pipelined <= blocking + runs[1].answered * (profile.decode(batch) + profile.between(batch))
