"""What the CUDA device asks of torch.cuda, on a stand-in that writes it down. No GPU here: arithmetic is not tested."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest
import torch

from photon.device.device import Operation


class FakeCuda:
    """Streams and events with the calls that the device makes of them, noted in order."""

    def __init__(self, handles: list[int]) -> None:
        self.log: list[str] = []
        fake = self

        class Stream:
            def __init__(self, device: Any) -> None:
                self.cuda_stream = handles.pop(0)

            def wait_event(self, event: Any) -> None:
                fake.log.append(f"{self.cuda_stream} waits for {event.name}")

            def synchronize(self) -> None:
                fake.log.append(f"host waits for stream {self.cuda_stream}")

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
                return True

            def elapsed_time(self, other: Any) -> float:
                return 1000.0 * int(other.name[1:])

        @contextmanager
        def stream(on: Any) -> Any:
            fake.log.append(f"on {on.cuda_stream}")
            yield

        self.members = {"Stream": Stream, "Event": Event, "stream": stream}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda([1, 2, 3])
    for name, member in fake.members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    return fake


def test_operations_wait_for_exactly_their_events(cuda: FakeCuda) -> None:
    from photon.device.cuda import CudaDevice

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


def test_an_error_while_queueing_comes_out_of_wait_and_of_what_came_after(cuda: FakeCuda) -> None:
    from photon.device.cuda import CudaDevice

    def fail() -> None:
        raise torch.OutOfMemoryError("full")

    device = CudaDevice()
    bad = device.launch("upload", Operation(fail))
    ran: list[int] = []
    dependent = device.launch("compute", Operation(lambda: ran.append(1)), after=[bad])
    for event in (bad, dependent):
        assert event.done()
        with pytest.raises(torch.OutOfMemoryError, match="full"):
            event.wait()
    assert ran == []


def test_one_stream_under_two_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from photon.device.cuda import CudaDevice

    for name, member in FakeCuda([1, 1, 2]).members.items():
        monkeypatch.setattr(torch.cuda, name, member)
    with pytest.raises(RuntimeError, match="one stream twice"):
        CudaDevice()
