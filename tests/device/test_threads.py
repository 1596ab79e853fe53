"""Order within and across streams, and where errors come out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from photon.device.device import Device, Operation
from photon.device.threads import ThreadDevice


@pytest.fixture
def device() -> Iterator[Device]:
    device = ThreadDevice()
    yield device
    device.close()


def test_one_stream_runs_in_order(device: Device) -> None:
    seen: list[int] = []

    def note(i: int) -> Callable[[], None]:
        return lambda: (time.sleep(0.001 * (5 - i)), seen.append(i))[1]

    events = [device.launch("compute", Operation(note(i))) for i in range(5)]
    events[-1].wait()
    assert seen == list(range(5))
    assert all(event.done() for event in events)


def test_after_orders_across_streams_and_launch_does_not_block(device: Device) -> None:
    gate, seen = threading.Event(), []
    first = device.launch("upload", Operation(lambda: (gate.wait(5), seen.append("upload"))[1]))
    second = device.launch("compute", Operation(lambda: seen.append("compute")), after=[first])
    third = device.launch("readback", Operation(lambda: seen.append("readback")), after=[second])
    assert not third.done()
    gate.set()
    third.wait()
    assert seen == ["upload", "compute", "readback"]


def test_streams_do_not_wait_for_each_other(device: Device) -> None:
    gate = threading.Event()
    blocked = device.launch("compute", Operation(lambda: bool(gate.wait(5)) and None))
    device.launch("readback", Operation(lambda: None)).wait()
    assert not blocked.done()
    gate.set()


def test_an_error_comes_out_of_every_wait_and_of_what_came_after(device: Device) -> None:
    ran: list[int] = []

    def fail() -> None:
        raise ValueError("broken")

    bad = device.launch("upload", Operation(fail))
    dependent = device.launch("compute", Operation(lambda: ran.append(1)), after=[bad])
    for event in (bad, bad, dependent):
        with pytest.raises(ValueError, match="broken"):
            event.wait()
    assert ran == []
    device.launch("compute", Operation(lambda: ran.append(2))).wait()
    assert ran == [2]
    device.drain()
