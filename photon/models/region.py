"""Coordinates and sizes in and out of the text model's hidden states.

Bins to values: a coordinate is bin / 1024, a size is 2^(bin / 1023 x 10 - 10) (1/1024 to 1), both float32. Values fed
back are cast to the model's precision first, as the reference does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from photon.models.config import RegionConfig
from photon.models.layers import MLP, linear, parameter


def coordinate_values(bins: int) -> Tensor:
    """The float32 value of every coordinate bin, [bins]."""
    return torch.arange(bins, dtype=torch.float32) / bins


def size_values(bins: int) -> Tensor:
    """The float32 value of every size bin, [bins].

    One bin at a time: torch's vectorised pow rounds some of these values differently from its scalar one, and the
    reference decodes scalars.
    """
    last = bins - 1
    return torch.stack([torch.pow(2.0, (torch.tensor(b).float() / last) * 10.0 - 10.0) for b in range(bins)])


class RegionModel(nn.Module):
    def __init__(self, config: RegionConfig) -> None:
        super().__init__()
        self.size_bins = config.size_out_dim // 2
        self.coord_features = parameter(1, config.coord_feat_dim // 2)
        self.size_features = parameter(2, config.size_feat_dim // 2)
        self.coord_encoder = linear(config.coord_feat_dim, config.dim)
        self.size_encoder = linear(config.size_feat_dim, config.dim)
        self.coord_decoder = MLP(config.dim, config.inner_dim, config.coord_out_dim)
        self.size_decoder = MLP(config.dim, config.inner_dim, config.size_out_dim)

    def encode_coordinate(self, values: Tensor) -> Tensor:
        """Coordinates [..., 1] to embeddings [..., dim]."""
        return self.coord_encoder(_fourier(values, self.coord_features))  # type: ignore[no-any-return]

    def encode_size(self, values: Tensor) -> Tensor:
        """Sizes (width, height) [..., 2] to embeddings [..., dim]."""
        return self.size_encoder(_fourier(values, self.size_features))  # type: ignore[no-any-return]

    def coordinate_logits(self, hidden: Tensor) -> Tensor:
        """Hidden states before the last norm [..., dim] to logits [..., coordinate bins]."""
        return self.coord_decoder(hidden)  # type: ignore[no-any-return]

    def size_logits(self, hidden: Tensor) -> Tensor:
        """Hidden states before the last norm [..., dim] to logits [..., 2, size bins], width then height."""
        return self.size_decoder(hidden).unflatten(-1, (2, self.size_bins))  # type: ignore[no-any-return]


def _fourier(values: Tensor, features: Tensor) -> Tensor:
    phase = (2 * math.pi * values.to(features.dtype)) @ features
    return torch.cat((phase.cos(), phase.sin()), dim=-1)
