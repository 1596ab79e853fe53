"""What the CUDA device asks of torch.cuda, on a stand-in that writes it down. No GPU here: arithmetic is not tested."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from photon.device.cuda import CudaDevice
from photon.device.device import Operation
from photon.errors import EngineError, UsageError

ILLEGAL = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported"


class FakeCuda:
    """Streams and events with the calls that the device makes of them, noted in order.

    With ``broken``, every question about the device's work raises it. ``milliseconds`` by name of an event is when it
    happened; without, an event happens a second after the one made before it.
    """

    def __init__(self, handles: list[int]) -> None:
        self.log: list[str] = []
        self.broken: Exception | None = None
        self.milliseconds: dict[str, float] = {}
        fake = self

        class Stream:
            def __init__(self, device: Any) -> None:
                self.cuda_stream = handles.pop(0)

            def wait_event(self, event: Any) -> None:
                fake.log.append(f"{self.cuda_stream} waits for {event.name}")

            def synchronize(self) -> None:
                fake.log.append(f"host waits for stream {self.cuda_stream}")
                fake.check()

        class Event:
            made = 0

            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                Event.made += 1
                self.name = f"e{Event.made}"

            def record(self, stream: Any) -> None:
                fake.log.append(f"{stream.cuda_stream} records {self.name}")

            def synchronize(self) -> None:
                fake.log.append(f"host waits for {self.name}")

            def query(self) -> bool:
                fake.check()
                return True

            def elapsed_time(self, other: Any) -> float:
                return float(np.float32(fake.when(other) - fake.when(self)))

        @contextmanager
        def stream(on: Any) -> Any:
            fake.log.append(f"on {on.cuda_stream}")
            yield

        self.members = {"Stream": Stream, "Event": Event, "stream": stream}

    def check(self) -> None:
        if self.broken is not None:
            raise self.broken

    def when(self, event: Any) -> float:
        return self.milliseconds.get(event.name, 1000.0 * (int(event.name[1:]) - 1))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda([1, 2, 3])
    for name, member in fake.members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    return fake


def test_operations_wait_for_exactly_their_events(cuda: FakeCuda) -> None:
    device = CudaDevice()
    cuda.log.clear()
    uploaded = device.launch("upload", Operation(lambda: cuda.log.append("copy")))
    forward = device.launch("compute", Operation(lambda: cuda.log.append("forward")), after=[uploaded])
    forward.wait()
    assert cuda.log == [
        "on 2", "2 records e2", "copy", "2 records e3",
        "1 waits for e3", "on 1", "1 records e4", "forward", "1 records e5",
    ]  # fmt: skip
    start, end = forward.span()
    assert end - start == 1.0


def fail_with(error: Exception) -> Operation:
    def fail() -> None:
        raise error

    return Operation(fail)


def test_an_error_while_queueing_comes_out_of_wait_and_of_what_came_after(cuda: FakeCuda) -> None:
    device = CudaDevice()
    bad = device.launch("upload", fail_with(ValueError("two shapes")))
    ran: list[int] = []
    dependent = device.launch("compute", Operation(lambda: ran.append(1)), after=[bad])
    for event in (bad, dependent):
        assert event.done()
        with pytest.raises(ValueError, match="two shapes"):
            event.wait()
    assert ran == []


def test_out_of_memory_says_what_to_lower_and_the_device_goes_on(cuda: FakeCuda) -> None:
    device = CudaDevice()
    bad = device.launch("compute", fail_with(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")))
    with pytest.raises(
        UsageError, match=r"lower engine\.max_batch, or engine\.memory_fraction.*Tried to allocate 2 GiB"
    ):
        bad.wait()
    ran: list[int] = []
    device.launch("compute", Operation(lambda: ran.append(1))).wait()
    assert ran == [1]
    device.drain()


def test_a_sticky_error_ends_everything_that_is_launched_later(cuda: FakeCuda) -> None:
    device = CudaDevice()
    forward = device.launch("compute", Operation(lambda: None))
    cuda.broken = torch.AcceleratorError(ILLEGAL)
    with pytest.raises(EngineError, match=r"lost to this process, which has to end.*illegal memory access"):
        forward.wait()
    ran: list[int] = []
    later = device.launch("upload", Operation(lambda: ran.append(1)))
    with pytest.raises(EngineError, match="lost to this process"):
        later.wait()
    assert ran == []
    cuda.log.clear()
    device.close()  # must not raise over the error that is on its way
    assert cuda.log == []


def test_a_device_found_lost_while_draining_does_not_hide_why_a_run_ended(cuda: FakeCuda) -> None:
    device = CudaDevice()
    cuda.broken = torch.AcceleratorError(ILLEGAL)
    device.drain()
    cuda.broken = ValueError("not the device's")
    with pytest.raises(EngineError, match="illegal memory access"):
        device.launch("compute", Operation(lambda: None)).wait()


def test_a_failing_stream_that_is_not_lost_is_told(cuda: FakeCuda) -> None:
    device = CudaDevice()
    cuda.broken = RuntimeError("CUDA error: invalid argument")
    with pytest.raises(RuntimeError, match="invalid argument"):
        device.drain()


def test_pageable_memory_is_refused_whichever_way_it_is_copied(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[torch.Tensor] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(self) or self)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: any(self is one for one in pinned))
    device = CudaDevice()
    ours = device.host_buffer(4, 3, dtype=torch.float32)
    ran: list[int] = []
    copy = Operation(lambda: ran.append(1), reads=[ours[:2], torch.empty(3, device="meta")], writes=[ours[1:, 0]])
    device.launch("upload", copy).wait()
    assert ran == [1]
    stray = torch.zeros(2, 5)
    for operation in (
        Operation(lambda: ran.append(2), reads=[stray]),
        Operation(lambda: ran.append(2), writes=[stray]),
    ):
        with pytest.raises(AssertionError, match=r"pageable host memory \[2, 5\]; take it from Device.host_buffer"):
            device.launch("upload", operation)
    assert ran == [1]
    device.launch("upload", Operation(lambda: None, reads=[torch.zeros(0)])).wait()


def test_memory_that_is_not_to_be_had_is_a_usage_error(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    device = CudaDevice()
    monkeypatch.setattr(torch.Tensor, "pin_memory", full)
    with pytest.raises(UsageError, match="the host cannot pin enough memory"):
        device.host_buffer(4, dtype=torch.int64)
    monkeypatch.setattr(torch, "zeros", full)
    with pytest.raises(UsageError, match="the CUDA device is out of memory"):
        device.buffer(4, dtype=torch.int64)


def test_free_memory_counts_what_torch_keeps(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 bytes are left in all, 15 of them kept by torch until it is told to give them back."""
    kept = [15]
    monkeypatch.setattr(torch.cuda, "empty_cache", kept.clear)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (40 - sum(kept), 100))
    assert CudaDevice().free_bytes() == 40


def test_spans_stay_exact_however_long_the_run(cuda: FakeCuda) -> None:
    """Steps of 1.25 ms, one every 3 s, for three hours: float32 milliseconds since the start would be off by 0.5."""
    device = CudaDevice()
    began = device._zero_seconds
    spans = []
    for number in range(3600):
        event = device.launch("compute", Operation(lambda: None))
        cuda.milliseconds |= {event.start.name: 3000.0 * number, event.end.name: 3000.0 * number + 1.25}
        spans.append(event.span())
    assert float(np.float32(10_797_001.25)) - float(np.float32(10_797_000.0)) != 1.25
    for start, end in spans:
        assert end - start == pytest.approx(1.25e-3, abs=2e-6)
    assert spans[-1][0] - began == pytest.approx(3.0 * 3599, abs=1e-3)


def test_one_stream_under_two_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, member in FakeCuda([1, 1, 2]).members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    with pytest.raises(RuntimeError, match="one stream twice"):
        CudaDevice()
