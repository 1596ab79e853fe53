"""The engine that goes with a model's name. ``photon://null`` loads without torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from photon.core import Request, Result
from photon.images.decode import DecodePolicy

NULL = "photon://null"


class AnyEngine(Protocol):
    """What a job needs of an engine. ``facts`` go into the run's record."""

    fingerprint: str
    facts: dict[str, object]

    def run(self, requests: Iterable[Request]) -> Iterator[Result]: ...

    def close(self) -> None: ...


def load_engine(path: str, *, policy: DecodePolicy, **options: Any) -> AnyEngine:
    """The engine for ``path``; ``options`` are those of ``photon.Engine.load``, and mean nothing to the null one."""
    if path == NULL:
        from photon.engine.null import NullEngine

        return NullEngine(policy)
    from photon.engine.engine import Engine

    return Engine.load(path, policy=policy, **options)
