"""What one text begins from: a request's prompt as embeddings, after its picture's prefix if it has one.

For decoders that take one request at a time; the batch engine packs prompts of many (``forward``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from photon.core import Image, ImageInfo, Request, Settings
from photon.engine.sampling import draw_row, noise_seed
from photon.errors import UsageError
from photon.images.decode import DecodePolicy, decode
from photon.models.load import LoadedModel
from photon.models.moondream import COORDINATE, SIZE, TOKEN, Moondream
from photon.models.tiling import canvas_size, crop_count, cut_crops, select_tiling
from photon.skills.grammar import MaskKind
from photon.skills.registry import script_for
from photon.skills.skill import Prompt, Script, SkillContext

Choice = Literal["greedy", "drawn", "cut"]
"""How a token is chosen: the likeliest, drawn from all, or drawn from the top-k and top-p of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Opening:
    """``inputs`` [positions, dim]: embeddings, of which the first ``prefix_len`` (0: no picture) see each other both
    ways."""

    script: Script
    settings: Settings
    inputs: Tensor
    prefix_len: int
    info: ImageInfo | None

    @property
    def positions(self) -> int:
        return self.inputs.shape[0]

    @property
    def draws(self) -> npt.NDArray[np.float32]:
        return draw_row(self.settings)

    @property
    def choice(self) -> Choice:
        temperature, top_p, top_k = self.draws
        if temperature == 0:
            return "greedy"
        return "cut" if top_p < 1 or top_k > 0 else "drawn"

    @property
    def seed(self) -> int:
        return noise_seed(self.settings.seed)


def open_text(loaded: LoadedModel, request: Request, policy: DecodePolicy, *, stop_repetition: bool) -> Opening:
    """Encode the request's picture and prompt. Raises ``UsageError`` for a request that is not plain text, and
    ``RowError`` for a broken picture or a skill that the model lacks."""
    if request.skill not in ("caption", "query") or request.settings.reasoning:
        what = "a reasoned query" if request.settings.reasoning else request.skill
        raise UsageError(f"the single-stream decoder takes captions and plain queries, not {what}: use photon.Engine")
    if request.settings.adapter is not None:
        raise UsageError("the single-stream decoder knows no adapters: use photon.Engine")
    model = loaded.model
    context = SkillContext(loaded.tokens, loaded.tokenizer, [], [], stop_repetition)  # text has no coordinates
    script = script_for(request, context)
    assert script.grammar.mask is not MaskKind.GRAMMAR
    inputs = _prompt(model, script.prompt)
    if request.image is None:
        return Opening(script, request.settings, inputs, 0, None)
    image_tokens, info = _encode(model, request.image, policy)
    prefix = model.prefix(loaded.tokens.bos_id, image_tokens)
    return Opening(script, request.settings, torch.cat((prefix, inputs)), len(prefix), info)


def _prompt(model: Moondream, prompt: Prompt) -> Tensor:
    ids = torch.tensor(prompt.ids, device=model.device)
    if not prompt.coordinates:
        return model.embed(ids)
    kinds = torch.full((len(prompt.ids),), TOKEN)
    values = torch.zeros(len(prompt.ids), 2)
    for at, value in prompt.coordinates.items():
        kinds[at], values[at, 0] = COORDINATE, value
    for at, size in prompt.sizes.items():
        kinds[at], values[at] = SIZE, torch.tensor(size)
    return model.embed(ids, kinds.to(model.device), values.to(model.device))


def _encode(model: Moondream, image: Image, policy: DecodePolicy) -> tuple[Tensor, ImageInfo]:
    """Image tokens [1, grid x grid, dim]."""
    vision = model.config.vision
    picture, info = decode(image.source, policy, partial(canvas_size, vision=vision))
    tiling = select_tiling(info.height, info.width, vision)
    pixels = np.empty((crop_count(tiling), vision.crop_size, vision.crop_size, 3), np.uint8)
    cut_crops(picture, tiling, vision, pixels, fast=policy.fast)
    return model.vision(torch.from_numpy(pixels).to(model.device), [tiling]), info
