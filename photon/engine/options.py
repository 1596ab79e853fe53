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
        "dtype": ("auto", "float32", "bfloat16"),
        "depth": (1, 2),
        "decision": ("masked", "reference"),
        "adapter_semantics": (None, "merged", "reference"),
    }
    for name, values in allowed.items():
        if choices[name] not in values:
            raise UsageError(f"{name} must be {' or '.join(map(str, values))}, not {choices[name]!r}")


def check_counts(memory_fraction: float, **counts: object) -> None:
    """Refuse numbers out of range."""
    if not 0 < memory_fraction <= 1:
        raise UsageError(f"memory_fraction must be in (0, 1], not {memory_fraction!r}")
    for name, count in counts.items():
        if count != "auto" and not (isinstance(count, int) and 1 <= count <= _MOST):
            raise UsageError(f"{name} must be auto or an integer from 1 to {_MOST}, not {count!r}")


def chosen_dtype(name: str, device: Device) -> torch.dtype:
    if name == "auto":
        return torch.float32 if device.torch_device.type == "cpu" else torch.bfloat16
    return torch.bfloat16 if name == "bfloat16" else torch.float32


def chosen_graphs(wanted: bool | Literal["auto"], device: Device) -> bool:
    """Whether steps are captured. Raises ``UsageError`` where that is asked of a device without graphs."""
    if wanted not in (True, False, "auto"):
        raise UsageError(f"graphs must be auto, True or False, not {wanted!r}")
    if wanted is True and not device.can_capture:
        raise UsageError(
            f"graphs: {device.torch_device.type} has none; leave it at auto, which takes them where there are any, or "
            "use device cuda"
        )
    return device.can_capture if wanted == "auto" else bool(wanted)


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
