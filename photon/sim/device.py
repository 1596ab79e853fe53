"""The virtual device, with copies that take a moment.

Order is not checked here; the engine's tests do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from photon.device.device import Event, Operation, Stream
from photon.device.virtual import HostCosts, VirtualDevice, VirtualEvent


class SimDevice(VirtualDevice):
    def __init__(self, *, launch: float, copy: float) -> None:
        """Seconds: of the host to queue an operation, and of an upload that names no time of its own."""
        super().__init__(check=False, costs=HostCosts(launch=launch))
        self._copy = copy

    def launch(self, stream: Stream, operation: Operation, after: Sequence[Event] = ()) -> VirtualEvent:
        if stream == "upload" and not operation.seconds:
            operation = replace(operation, seconds=self._copy)
        return super().launch(stream, operation, after)
