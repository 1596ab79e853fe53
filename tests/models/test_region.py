from __future__ import annotations

import torch

from photon.models.region import coordinate_values, size_values


def test_coordinates_are_exact_binary_fractions() -> None:
    assert coordinate_values(1024).tolist() == [b / 1024 for b in range(1024)]


def test_sizes_follow_the_formula_and_its_ends() -> None:
    values = size_values(1024)
    assert values.dtype == torch.float32
    assert values[0].item() == 1 / 1024
    assert values[1023].item() == 1.0
    exact = [2.0 ** (b / 1023 * 10 - 10) for b in range(1024)]
    assert all(abs(v - e) <= 1e-6 * e for v, e in zip(values.tolist(), exact, strict=True))
    assert (values.diff() > 0).all()
