"""What ``Engine.load`` is asked for, checked before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch

from photon.device.device import Device
from photon.engine.adapters import MOST_SLOTS, AdapterBank
from photon.errors import UsageError
from photon.models.lora import read_adapter
from photon.models.moondream import Moondream

AdapterFiles = Mapping[str, str | os.PathLike[str]]
Semantics = Literal["merged", "reference"]
_MOST = 4096


def check_choices(**choices: object) -> None:
    """Refuse arguments that are none of the choices."""
    allowed = {
        "device": ("auto", "cpu", "cuda"),
        "dtype": ("auto", "float32", "bfloat16"),
        "depth": (1, 2),
        "decision": ("masked", "reference"),
        "adapter_semantics": (None, "merged", "reference"),
    }
    for name, values in allowed.items():
        if choices[name] not in values:
            raise UsageError(f"{name} must be {' or '.join(map(str, values))}, not {choices[name]!r}")


def check_counts(**counts: object) -> None:
    for name, count in counts.items():
        if count != "auto" and not (isinstance(count, int) and 1 <= count <= _MOST):
            raise UsageError(f"{name} must be auto or an integer from 1 to {_MOST}, not {count!r}")


def chosen_dtype(name: str, device: Device) -> torch.dtype:
    if name == "auto":
        return torch.float32 if device.torch_device.type == "cpu" else torch.bfloat16
    return torch.bfloat16 if name == "bfloat16" else torch.float32


def load_adapters(
    files: AdapterFiles, model: Moondream, device: Device, *, slots: int | Literal["auto"], merged: bool
) -> AdapterBank | None:
    """The bank of the adapters in ``files``, by name; None for none. Raises ``UsageError`` for a file that does not
    fit."""
    if not files:
        return None
    config = model.config.text
    adapters = {name: read_adapter(Path(path), config) for name, path in files.items()}
    count = min(len(adapters), MOST_SLOTS if slots == "auto" else slots)
    return AdapterBank(adapters, slots=count, merged=merged, config=config, device=device, dtype=model.dtype)
