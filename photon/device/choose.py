"""The device that goes with a name."""

from __future__ import annotations

from typing import Literal

import torch

from photon.device.device import Device
from photon.device.threads import ThreadDevice
from photon.errors import UsageError

DeviceName = Literal["auto", "cpu", "cuda"]


def open_device(name: DeviceName) -> Device:
    """``auto`` is the CPU: CUDA has to be asked for while it has not been measured on a GPU. Raises ``UsageError``."""
    if name != "cuda":
        return ThreadDevice()
    if not torch.cuda.is_available():
        raise UsageError("device cuda: this torch finds no CUDA device; use cpu, or install a CUDA build of torch")
    from photon.device.cuda import CudaDevice

    return CudaDevice()
