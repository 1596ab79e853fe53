"""How much goes into one step."""

from __future__ import annotations

import pytest

from photon.device.virtual import VirtualDevice
from photon.engine.sizes import Sizes, choose_sizes
from photon.models.config import MoondreamConfig
from tests.engine import micro


def sizes(config: MoondreamConfig, device_type: str) -> Sizes:
    return choose_sizes(
        config, max_batch=8, device_type=device_type, free_bytes=1 << 34, itemsize=2, memory_fraction=0.9
    )


def test_a_cpu_takes_published_models_pictures_one_by_one() -> None:
    """A crop of 729 patches is 12 MB in the widest layer, a prefix 24 MB; pictures have 13 crops at most."""
    chosen = sizes(MoondreamConfig(), "cpu")
    assert (chosen.vision_crops, chosen.picture_crops, chosen.slot_crops) == (1, 13, 13)
    assert chosen.prefill_tokens == 730 + 512


def test_a_cpu_takes_many_small_pictures_at_once() -> None:
    chosen = sizes(micro.loaded().model.config, "cpu")
    assert chosen.vision_crops == chosen.slot_crops == 16
    assert chosen.prefill_tokens == 16 * micro.loaded().model.config.prefix_len + 512


def test_a_gpu_packs() -> None:
    chosen = sizes(MoondreamConfig(), "cuda")
    assert (chosen.vision_crops, chosen.prefill_tokens) == (13, 4 * 730 + 512)


@pytest.mark.parametrize("vision_crops", [1, 16])
@pytest.mark.parametrize("depth", [1, 2])
def test_answers_do_not_depend_on_how_pictures_are_packed(vision_crops: int, depth: int) -> None:
    """Pictures of one to five crops, on the checking device."""
    engine = micro.checked(VirtualDevice(seed=vision_crops), depth=depth, max_batch=6, vision_crops=vision_crops)
    assert engine._sizes.slot_crops == max(vision_crops, engine._sizes.picture_crops)
    asks = [(("detect", "point", "query")[i % 3], i % 4, i) for i in range(12)]
    results = engine.run([micro.request(id, *rest) for id, rest in enumerate(asks)])
    assert {r.id: micro.answer(r) for r in results} == {id: micro.alone(*rest) for id, rest in enumerate(asks)}
