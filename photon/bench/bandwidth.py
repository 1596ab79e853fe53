"""How fast this machine moves memory: a copy of a buffer that no cache holds, by torch itself."""

from __future__ import annotations

import time

import torch

_BYTES = {"cpu": 1 << 28, "cuda": 1 << 30}
_REPEATS = 7


def copy_bandwidth(device: torch.device) -> float:
    """Bytes read and written per second, best of a few copies. One thread of torch's is one thread's bandwidth."""
    size = _BYTES.get(device.type, 1 << 28)
    source, target = (torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(_REPEATS):
        target[:1].tolist()  # waits for the device
        start = time.perf_counter()
        target.copy_(source)
        target[:1].tolist()
        best = min(best, time.perf_counter() - start)
    return 2 * size / best
