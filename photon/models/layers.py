"""The two layers that every part of the model repeats.

Parameters are made on the meta device: their shapes are checked against the file before any memory is spent, then
the file's own tensors take their place.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from photon.kernels.dense import Linear
from photon.models.lora import LayerDeltas

LAYER_NORM_EPS = 1e-5


def linear(inputs: int, outputs: int) -> Linear:
    return Linear(inputs, outputs, device="meta")


def layer_norm(dim: int) -> nn.LayerNorm:
    return nn.LayerNorm(dim, eps=LAYER_NORM_EPS, device="meta")


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape, device="meta"), requires_grad=False)


class MLP(nn.Module):
    """fc1, GELU (tanh form), fc2."""

    def __init__(self, inputs: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.fc1 = linear(inputs, inner)
        self.fc2 = linear(inner, outputs)

    def forward(self, x: Tensor, deltas: LayerDeltas | None = None) -> Tensor:
        """``deltas``: what adapters add, in a block of the text model."""
        if deltas is None:
            return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))  # type: ignore[no-any-return]
        inner = F.gelu(self.fc1(x) + deltas("mlp.fc1", x), approximate="tanh")
        return self.fc2(inner) + deltas("mlp.fc2", inner)  # type: ignore[no-any-return]
