"""The float32 route of bfloat16 arithmetic on a CPU."""

from __future__ import annotations

import pytest
import torch

from photon.kernels import dense


@pytest.mark.parametrize("rows", [1, 31, 32, 200])
@pytest.mark.parametrize("native", [False, True])
def test_linear_in_bfloat16_is_the_rounded_float32_product(
    rows: int, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512" if native else "AVX2")
    torch.manual_seed(rows)
    layer = dense.Linear(64, 48).bfloat16()
    x = torch.randn(rows, 64).bfloat16()
    exact = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
    out = layer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.double(), exact, rtol=2**-7, atol=2**-9)


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_in_bfloat16_is_near_float32(kv_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    q = torch.randn(2, 4, 9, 16)
    k, v = torch.randn(2, 2, kv_heads, 9, 16)
    rounded = [x.bfloat16() for x in (q, k, v)]
    exact = dense.attention(*(x.float() for x in rounded))
    torch.testing.assert_close(dense.attention(*rounded).float(), exact, rtol=2**-7, atol=2**-8)
