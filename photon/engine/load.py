"""The engine that goes with a model's name. ``photon://null`` loads without torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from photon.core import Request, Result
from photon.engine.record import Listener
from photon.engine.statistics import Statistics
from photon.images.decode import DecodePolicy

NULL = "photon://null"


class AnyEngine(Protocol):
    """What a job needs of an engine. ``facts`` and ``statistics`` go into the run's record.

    ``statistics`` are those of the last run; None for an engine that takes no steps, which has nothing to trace.
    """

    fingerprint: str
    facts: dict[str, object]

    @property
    def statistics(self) -> Statistics | None: ...

    def run(self, requests: Iterable[Request], *, trace: Listener | None = None) -> Iterator[Result]: ...

    def close(self) -> None: ...


def load_engine(path: str, *, policy: DecodePolicy, **options: Any) -> AnyEngine:
    """The engine for ``path``; ``options`` are those of ``photon.Engine.load``, and mean nothing to the null one."""
    if path == NULL:
        from photon.engine.null import NullEngine

        return NullEngine(policy)
    from photon.engine.engine import Engine

    return Engine.load(path, policy=policy, **options)
