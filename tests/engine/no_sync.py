"""Refuses, at the level of torch's functions, what would stop the host: on a CPU such calls cost nothing and dispatch
no operator (tolist, cpu and numpy among them)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_FORBIDDEN = {
    "item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__array__", "nonzero",
    "argwhere", "masked_select", "unique", "equal", "is_nonzero", "tensor", "as_tensor", "from_numpy", "pin_memory",
}  # fmt: skip


class StopsTheHost(AssertionError):
    pass


class NoSync(TorchFunctionMode):
    """Refuses every call that waits for the device, or that would upload from pageable memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _FORBIDDEN:
            raise StopsTheHost(f"{name} is called")
        if name in ("__getitem__", "__setitem__"):
            for index in args[1] if isinstance(args[1], tuple) else (args[1],):
                if isinstance(index, (list, bool)) or (isinstance(index, Tensor) and index.dtype == torch.bool):
                    raise StopsTheHost(f"{name} with {'a mask' if isinstance(index, Tensor) else 'a list'}")
        if name == "where" and len(args) == 1:
            raise StopsTheHost("where with one argument")
        if name == "to" and torch.device("cpu") in args[1:]:
            raise StopsTheHost("to(cpu)")
        return func(*args, **(kwargs or {}))
