"""When steps are captured, what happens where they cannot be, and who may know of CUDA."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import photon
from photon.core import Request
from photon.device.device import Operation
from photon.device.graphs import ForeignTensorError, check_devices
from photon.device.threads import ThreadDevice
from photon.device.virtual import VirtualDevice
from photon.engine.captured import CapturedForward
from photon.engine.forward import Forward
from photon.engine.options import chosen_graphs
from photon.errors import UsageError
from tests.engine import micro, tape
from tests.engine.tape import CaptureError, TapeThreads
from tests.test_house import TREES


def asked() -> list[Request]:
    return [micro.request(i, ("detect", "query", "caption")[i % 3], i % 4, i) for i in range(9)]


def expected() -> dict[object, tuple[Any, ...]]:
    return {i: micro.alone(("detect", "query", "caption")[i % 3], i % 4, i) for i in range(9)}


# -- the choice ------------------------------------------------------------------------------------------------------


def test_graphs_are_taken_where_there_are_any() -> None:
    plain, taping = ThreadDevice(), TapeThreads()
    assert chosen_graphs("auto", taping) is True
    assert chosen_graphs(True, taping) is True
    assert chosen_graphs(False, taping) is False
    assert chosen_graphs("auto", plain) is False
    assert chosen_graphs(False, plain) is False
    assert not VirtualDevice().can_capture
    for device in (plain, taping):
        device.close()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (True, "graphs: cpu has none; leave it at auto, which takes them where there are any, or use device cuda"),
        ("yes", "graphs must be auto, True or False, not 'yes'"),
    ],
)
def test_graphs_that_cannot_be_had_are_refused(wanted: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        photon.Engine.load("photon://tiny", graphs=wanted)
    assert str(caught.value) == message


@pytest.mark.parametrize("device", [ThreadDevice, VirtualDevice])
def test_a_device_without_graphs_says_so(device: Any) -> None:
    made = device()
    with pytest.raises(RuntimeError, match="no graphs"):
        made.capture(Operation(lambda: None))
    made.close()


def test_an_engine_without_graphs_is_the_plain_one() -> None:
    engine = micro.engine(ThreadDevice())
    assert type(engine._forward) is Forward
    assert "graphs" not in engine.facts
    assert len(list(engine.run(asked()))) == 9
    assert (engine.statistics.graph_replays, engine.statistics.graph_fallbacks) == (0, {})
    assert "graphs" not in engine.statistics.text()
    engine.close()


# -- what cannot be captured -----------------------------------------------------------------------------------------


class Small(TapeThreads):
    """Has no room for what has more than ``room`` rows or crops."""

    room = 2

    def capture(self, operation: Operation) -> Callable[[], None]:
        if self.engine_rows(operation) > self.room:
            raise torch.OutOfMemoryError("no room for the graph")
        return super().capture(operation)

    def engine_rows(self, operation: Operation) -> int:
        sizes: list[int] = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func.__name__.startswith("copy_"):
                    sizes.append(args[0].shape[0])
                return func(*args, **(kwargs or {}))

        with torch.inference_mode(), Watch():
            operation.run()
        return max(sizes)


def test_a_bucket_without_room_runs_eagerly_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "photon")
    engine = micro.engine(Small(), max_batch=4, graphs=True)
    why = "OutOfMemoryError: no room for the graph"
    assert engine.facts["graphs"] == {
        "rows": [1, 2], "crops": [1, 2], "missed": {"vision 5": why, "vision 4": why, "decode 4": why},
    }  # fmt: skip
    seen: set[str] = set()  # how rows fall together hangs on the moment, so not every run has every fallback
    for _ in range(2):
        assert {result.id: micro.answer(result) for result in engine.run(asked())} == expected()
        seen |= set(engine.statistics.graph_fallbacks)
    fallbacks = engine.statistics.graph_fallbacks
    assert {"decode of a size that is not captured", "vision of a size that is not captured"} <= seen
    assert engine.statistics.graph_replays > 0
    assert "without one: " in engine.statistics.text()
    assert engine.statistics.as_dict()["graph_fallbacks"] == fallbacks
    told = [record.getMessage() for record in caplog.records if "without a graph" in record.getMessage()]
    assert len(told) == len(set(told)) == 3 + len(seen)
    engine.close()


def spoilt(call: Callable[[Any], object]) -> Callable[..., Operation]:
    """``CapturedForward._step`` with a call in it that is given the slot."""
    step = CapturedForward._step

    def spoil(self: Any, slot: Any, at: Any, layout: Any) -> Operation:
        operation = step(self, slot, at, layout)
        return Operation(lambda: (call(slot), operation.run())[1], operation.reads, operation.writes)

    return spoil


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda slot: slot.hidden.sum().item(), "StopsTheHost: item is called"),
        (lambda slot: slot.hidden[slot.hidden > 0], "StopsTheHost: __getitem__ with a mask"),
        (lambda slot: torch.ops.aten._local_scalar_dense(slot.hidden.sum()), r"CaptureError: \S+ waits for the device"),
        (lambda slot: slot.inputs.device.copy_(slot.inputs.host), r"CaptureError: \S+ touches the host's memory"),
        (lambda slot: slot.landing.zero_(), r"CaptureError: it writes \[\[8, 6\]\] without having declared it"),
        (lambda slot: torch.zeros(2, device="meta"), r"ForeignTensorError: \S+ of a captured operation touches"),
    ],
)
def test_what_a_capture_refuses_runs_eagerly(
    call: Callable[[Any], object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CapturedForward, "_step", spoilt(call))
        engine = micro.engine(TapeThreads(), max_batch=4, graphs=True)
    graphs: Any = engine.facts["graphs"]
    assert graphs["rows"] == []
    assert graphs["crops"] == [1, 2, 4, 5]
    assert list(graphs["missed"]) == ["decode 4", "decode 2", "decode 1"]
    assert all(re.match(why, told) for told in graphs["missed"].values()), graphs["missed"]
    assert {result.id: micro.answer(result) for result in engine.run(asked())} == expected()
    assert engine.statistics.graph_replays == engine.statistics.steps["vision"]
    engine.close()


# -- devices ---------------------------------------------------------------------------------------------------------


def meta(*shape: int) -> Tensor:
    return torch.zeros(*shape, device="meta")


def test_what_is_all_on_the_device_may_be_captured() -> None:
    there = meta(3)
    check_devices(
        Operation(lambda: there.add_(torch.ones(3, device="meta") * 2), [there], [there]), torch.device("meta")
    )


@pytest.mark.parametrize(
    ("run", "reads", "message"),
    [
        (lambda there, here: None, "here", r"a captured operation touches a tensor \[3\] on cpu, not on meta"),
        (lambda there, here: there.copy_(here), "", r"aten.copy_.default of a captured operation touches .* on cpu"),
        (lambda there, here: torch.zeros(3), "", r"aten.zeros.default of a captured operation touches .* on cpu"),
        (lambda there, here: there.add_(torch.tensor(2.0)), "", r"touches a tensor \[\] on cpu, not on meta"),
    ],
    ids=["declared", "an argument", "made there", "a number"],
)
def test_foreign_tensors_are_refused(run: Callable[[Tensor, Tensor], object], reads: str, message: str) -> None:
    there, here = meta(3), torch.zeros(3)
    operation = Operation(lambda: (run(there, here), None)[1], [here] if reads else [there], [there])
    with pytest.raises(ForeignTensorError, match=message):
        check_devices(operation, torch.device("meta"))


def test_a_tape_replays_on_the_addresses_that_it_was_made_with() -> None:
    """The stand-in itself: inputs are read anew, numbers and branches are not, and temporaries are spoilt after."""
    device = TapeThreads()
    x, y = (device.buffer(3, dtype=torch.float32) for _ in range(2))
    state: dict[str, Any] = {"factor": 2.0}

    def run() -> None:
        state["temporary"] = x * state["factor"]
        y.copy_(state["temporary"] + 1)

    x.fill_(1.0)
    replay = device.capture(Operation(run, [x], [y]))
    x.fill_(5.0)
    state["factor"] = 100.0
    with torch.inference_mode():
        replay()
    assert y.tolist() == [11.0] * 3
    assert state["temporary"].tolist() == [pytest.approx(tape.SPOILT)] * 3
    with pytest.raises(CaptureError, match="without having declared it"):
        device.capture(Operation(run, [x], []))
    device.close()


# -- floors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in TREES if name.startswith("photon.engine")])
def test_no_file_of_the_engine_knows_cuda_or_triton(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) != ("torch", "cuda"), f"line {node.lineno}"
        imported: list[str] = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        for module in imported:
            assert not module.startswith(("torch.cuda", "triton", "photon.device.cuda", "photon.kernels.triton")), (
                f"line {node.lineno} imports {module}"
            )
