"""Which storages torch operators really read and write.

Views share their storage, so a buffer is known by the address of its memory, whatever part of it is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def storage_of(tensor: Tensor) -> int:
    """The address of the tensor's memory."""
    return tensor.untyped_storage().data_ptr()


@dataclass(slots=True)
class Touched:
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)


class _Recorder(TorchDispatchMode):
    def __init__(self, watched: Collection[int], touched: Touched) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._watched, self._touched = watched, touched

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        arguments = func._schema.arguments
        given = [*zip(arguments, args, strict=False), *((a, kwargs[a.name]) for a in arguments if a.name in kwargs)]
        for argument, value in given:
            written = argument.alias_info is not None and argument.alias_info.is_write
            for leaf in tree_leaves(value):
                if isinstance(leaf, Tensor) and (address := storage_of(leaf)) in self._watched:
                    (self._touched.written if written else self._touched.read).add(address)
        return func(*args, **kwargs)


@contextmanager
def record_touches(watched: Collection[int]) -> Iterator[Touched]:
    """Record which of the ``watched`` storages the operators inside touch. A view counts as a read of its base."""
    touched = Touched()
    with _Recorder(watched, touched):
        yield touched
