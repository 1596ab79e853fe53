"""Which device a name gives, and what is said where it gives none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from photon.device.choose import open_device
from photon.device.threads import ThreadDevice
from photon.errors import UsageError


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_the_cpu(name: Any) -> None:
    device = open_device(name)
    assert isinstance(device, ThreadDevice)
    device.close()


def test_auto_is_the_cpu_beside_a_gpu_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    device = open_device("auto")
    assert isinstance(device, ThreadDevice)
    device.close()


@pytest.mark.parametrize(
    ("name", "cuda", "words"),
    [
        ("cuda", None, "it is built without CUDA; install a CUDA build of torch, or use cpu"),
        ("cuda", "12.8", "whether CUDA_VISIBLE_DEVICES hides it, and whether its driver is new enough for CUDA 12.8"),
        ("cuda:1", "12.8", "use device cuda with CUDA_VISIBLE_DEVICES=1, and one process for each GPU"),
        ("gpu", "12.8", "device must be auto or cpu or cuda, not 'gpu'"),
    ],
)
def test_what_cannot_be_had(name: Any, cuda: str | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(UsageError) as caught:
        open_device(name)
    assert words in str(caught.value)
