"""The vision part, stage by stage, against the reference's tensors."""

from __future__ import annotations

import pytest
import torch

from photon.models.load import LoadedModel
from photon.models.vision import normalise
from tests.reference import IMAGES, assert_close, crops, every


@torch.inference_mode()
def test_patches_and_their_embedding(tiny: LoadedModel) -> None:
    vision = tiny.model.vision
    pixels = normalise(crops("noise_160x200", vision.config)[0], torch.float32)
    patches = vision.patches(pixels)
    assert_close(every(patches, 50, 1).expand(2, -1, -1), "noise_160x200.patches_s50")
    placed = vision.patch_emb(patches) + vision.pos_emb
    assert_close(every(placed, 50, 1).expand(2, -1, -1), "noise_160x200.patch_emb_out_s50")


@torch.inference_mode()
@pytest.mark.parametrize("name", IMAGES)
def test_features_pooling_and_projection(tiny: LoadedModel, name: str) -> None:
    vision = tiny.model.vision
    pixels, tiling = crops(name, vision.config)
    features = vision.encode(normalise(pixels, torch.float32))
    pooled = vision.pool(features if tiling == (1, 1) else features[1:], tiling)
    grid = pooled.view(vision.config.grid, vision.config.grid, -1)
    tokens = vision.project(features, [tiling])[0]
    if name == "noise_160x200":
        assert_close(features.expand(2, -1, -1), f"{name}.vision_out")
        assert_close(grid, f"{name}.pooled_local")
        assert_close(tokens, f"{name}.img_emb")
    else:
        assert_close(every(features, 9, 1), f"{name}.vision_out_s9")
        assert_close(every(grid, 3, 0, 1), f"{name}.pooled_local")
        assert_close(every(tokens, 3, 0), f"{name}.img_emb")


@torch.inference_mode()
def test_pictures_in_one_batch_come_out_as_alone(tiny: LoadedModel) -> None:
    vision = tiny.model.vision
    cut = [crops(name, vision.config) for name in IMAGES[:3]]
    together = vision(torch.cat([pixels for pixels, _ in cut]), [tiling for _, tiling in cut])
    for tokens, (pixels, tiling) in zip(together, cut, strict=True):
        alone = vision(pixels, [tiling])[0]
        assert torch.allclose(tokens, alone, atol=1e-4)
