"""CUDA graphs: an operation's kernels recorded once, replayed with one call. Not yet run on a GPU by us.

A graph is frozen: the same kernels on the same addresses with the same shapes, whatever Python decided while it was
recorded. What to capture, and which graph a step replays, is the engine's ``captured``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from photon.device.device import Operation

_WARM_UPS = 3


class ForeignTensorError(RuntimeError):
    """A captured operation touches memory that is not its device's: the copy would stop the host, or be frozen."""


class OnDevice(TorchDispatchMode):
    """Refuses operators with an argument or a result that is not on ``device``."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        refuse_foreign((args, kwargs, result), self._device, f"{func} of a captured operation")
        return result


def refuse_foreign(values: Any, device: torch.device, what: str) -> None:
    """Raises ``ForeignTensorError`` where a tensor among ``values``, nested as they like, is not on ``device``."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, Tensor) and not _same(leaf.device, device):
            raise ForeignTensorError(f"{what} touches a tensor {list(leaf.shape)} on {leaf.device}, not on {device}")


def _same(one: torch.device, other: torch.device) -> bool:
    """A device without a number is any of its kind."""
    return one.type == other.type and (one.index is None or other.index is None or one.index == other.index)


def check_devices(operation: Operation, device: torch.device) -> None:
    """Run the operation once, eagerly. Raises ``ForeignTensorError`` where what it declares, or an operator in it,
    touches a tensor that is not on ``device``."""
    refuse_foreign((operation.reads, operation.writes), device, "a captured operation")
    with torch.inference_mode(), OnDevice(device):
        operation.run()


class CudaGraphs:
    """The graphs of one device. They share one pool of temporary memory, so they are replayed on one stream, and leave
    nothing in it for one another."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool: Any = None

    def capture(self, operation: Operation) -> Callable[[], None]:
        """See ``Device.capture``."""
        check_devices(operation, self._device)
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        with torch.inference_mode():
            return capture(operation.run, self._pool)


def capture(run: Callable[[], None], pool: Any = None) -> Callable[[], None]:
    """``run``'s kernels as one graph; the result replays them on the current stream. ``pool``: of temporary memory, see
    ``torch.cuda.graph_pool_handle``; None is one of its own.

    ``run`` may not allocate what outlives it nor wait for the device. It is run a few times first, on a side stream,
    since libraries set themselves up at their first call, so the caller has to put back what ``run`` changed.
    """
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            run()
    current.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        run()

    def replay() -> None:
        graph.replay()

    return replay
