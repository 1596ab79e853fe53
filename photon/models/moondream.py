"""A Moondream 2 model: vision, text and region parts under the hub checkpoint's names.

Holds no state of a run: pages, rows and batches belong to the engine.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from photon.models.config import MoondreamConfig
from photon.models.region import RegionModel
from photon.models.text import TextModel
from photon.models.vision import VisionModel

# What an input position holds: a token of the vocabulary, a coordinate, or a (width, height).
TOKEN, COORDINATE, SIZE = 0, 1, 2


class Moondream(nn.Module):
    def __init__(self, config: MoondreamConfig) -> None:
        """Parameters are on the meta device until ``weights.load_weights`` gives them values."""
        super().__init__()
        self.config = config
        self.vision = VisionModel(config.vision)
        self.text = TextModel(config.text)
        self.region = RegionModel(config.region)
        self.eval().requires_grad_(False)

    @property
    def device(self) -> torch.device:
        return self.text.wte.device

    @property
    def dtype(self) -> torch.dtype:
        return self.text.wte.dtype

    def embed(self, ids: Tensor, kinds: Tensor | None = None, values: Tensor | None = None) -> Tensor:
        """Input embeddings [n, dim].

        ``ids`` [n]; ``kinds`` [n] of TOKEN, COORDINATE and SIZE says which positions hold a region value instead:
        ``values`` [n, 2] float32, the coordinate in column 0 or (width, height). None: all are tokens.
        """
        x = self.text.wte[ids]
        if kinds is None or values is None:
            return x
        coordinates = self.region.encode_coordinate(values[:, :1])
        sizes = self.region.encode_size(values)
        kinds = kinds[:, None]
        return torch.where(kinds == COORDINATE, coordinates, torch.where(kinds == SIZE, sizes, x))

    def prefix(self, bos_id: int, image_tokens: Tensor) -> Tensor:
        """Input embeddings of whole prefixes: BOS before the image tokens of each picture.

        ``image_tokens`` [pictures, grid x grid, dim] to [pictures x prefix_len, dim].
        """
        bos = self.text.wte[bos_id].expand(image_tokens.shape[0], 1, -1)
        return torch.cat((bos, image_tokens), dim=1).flatten(0, 1)
