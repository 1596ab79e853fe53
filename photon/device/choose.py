"""The device that goes with a name."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from photon.device.device import Device
from photon.device.threads import ThreadDevice
from photon.errors import UsageError

DeviceName = Literal["auto", "cpu", "cuda"]


def open_device(name: DeviceName) -> Device:
    """``auto`` is the CPU: CUDA has to be asked for while it has not been measured on a GPU.

    ``cuda`` is the first GPU that the process sees; ``CUDA_VISIBLE_DEVICES`` says which that is. Raises ``UsageError``.
    """
    if name.startswith("cuda:"):
        number = name.removeprefix("cuda:")
        raise UsageError(
            f"device {name}: a process drives one GPU, and CUDA_VISIBLE_DEVICES says which; use device cuda with "
            f"CUDA_VISIBLE_DEVICES={number}, and one process for each GPU"
        )
    if name not in get_args(DeviceName):
        raise UsageError(f"device must be {' or '.join(get_args(DeviceName))}, not {name!r}")
    if name != "cuda":
        return ThreadDevice()
    if not torch.cuda.is_available():
        raise UsageError(f"device cuda: {_why_no_cuda()}, or use cpu")
    from photon.device.cuda import CudaDevice

    return CudaDevice()


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return "this torch finds no CUDA device, since it is built without CUDA; install a CUDA build of torch"
    return (
        "this torch finds no CUDA device; see whether nvidia-smi shows one, whether CUDA_VISIBLE_DEVICES hides it, and "
        f"whether its driver is new enough for CUDA {torch.version.cuda}"
    )
