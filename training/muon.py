"""Muon: steps along the nearest orthogonal matrix to the momentum, for the matrices inside the blocks.

Keller Jordan, "Muon: an optimizer for hidden layers in neural networks" (2024); step sizes are scaled to match AdamW's
as in Moonlight (2025). In float32, since CPUs without bfloat16 arithmetic are slow in it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 4
_LIKE_ADAM = 0.2  # typical size of an entry of AdamW's steps


def orthogonalised(matrices: Tensor) -> Tensor:
    """[n, rows, columns], each to about its nearest matrix with singular values 1."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices.transpose(1, 2) if tall else matrices
    x = x / (torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        square = x @ x.transpose(1, 2)
        x = a * x + torch.baddbmm(b * square, square, square, alpha=c) @ x
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, groups: list[dict[str, Any]], momentum: float = 0.95) -> None:
        """``groups``: of matrices only, with ``weight_decay``."""
        super().__init__(groups, {"lr": 0.0, "momentum": momentum, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(tuple(parameter.shape), []).append(parameter)
            for shape, parameters in by_shape.items():
                self._step_alike(shape, parameters, group)

    def _step_alike(self, shape: tuple[int, ...], parameters: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        for parameter in parameters:
            if "momentum" not in self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        momenta = [self.state[parameter]["momentum"] for parameter in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        steps = orthogonalised(torch.stack(list(ahead))) * (_LIKE_ADAM * max(shape) ** 0.5)
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(parameters, list(steps.unbind()), alpha=-group["lr"])
