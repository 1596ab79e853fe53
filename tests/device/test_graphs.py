"""What capturing asks of torch.cuda, on a stand-in that writes it down. No GPU here: a real capture is not tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from photon.device.device import Operation
from photon.device.graphs import CudaGraphs, ForeignTensorError


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []

    class Stream:
        def wait_stream(self, other: Any) -> None: ...

    class Graph:
        made = 0

        def __init__(self) -> None:
            Graph.made += 1
            self.number = Graph.made

        def replay(self) -> None:
            calls.append(f"replay {self.number}")

    @contextmanager
    def within(what: Any, pool: Any = None) -> Iterator[None]:
        if isinstance(what, Graph):
            calls.append(f"graph {what.number} in {pool}")
        yield

    def handle() -> str:
        calls.append("a pool")
        return "the pool"

    members: dict[str, Any] = {
        "current_stream": Stream, "Stream": Stream, "stream": within, "CUDAGraph": Graph, "graph": within,
        "graph_pool_handle": handle,
    }  # fmt: skip
    for name, member in members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    return calls


def test_all_graphs_of_a_device_share_a_pool(log: list[str]) -> None:
    graphs = CudaGraphs(torch.device("meta"))
    buffer = torch.zeros(3, device="meta")
    assert log == []  # nothing is asked of CUDA before the first capture
    replays = [graphs.capture(Operation(lambda: log.append("run"), [buffer], [buffer])) for _ in range(2)]
    warm = ["run"] * 4  # once under the eyes of the device check, then warming up
    assert log == ["run", "a pool", *warm[1:], "graph 1 in the pool", "run", *warm, "graph 2 in the pool", "run"]
    log.clear()
    for replay in reversed(replays):
        replay()
    assert log == ["replay 2", "replay 1"]


def test_what_is_not_on_the_device_is_not_captured(log: list[str]) -> None:
    graphs = CudaGraphs(torch.device("meta"))
    here = torch.zeros(3)
    with pytest.raises(ForeignTensorError, match="on cpu, not on meta"):
        graphs.capture(Operation(lambda: log.append("run"), [here], []))
    with pytest.raises(ForeignTensorError, match="on cpu, not on meta"):
        graphs.capture(Operation(lambda: (here + 1, None)[1]))
    assert log == []


def test_nothing_is_captured_under_autograd(log: list[str]) -> None:
    modes: list[bool] = []
    CudaGraphs(torch.device("meta")).capture(Operation(lambda: modes.append(torch.is_inference_mode_enabled())))
    assert modes == [True] * 5
