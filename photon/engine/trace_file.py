"""A trace as a file in Chrome's trace event format, which https://ui.perfetto.dev opens.

A JSON array with one event a line, written as steps are committed. The format lets the closing bracket be missing, so
that the file of a run that was killed opens too.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from photon.engine.record import Span, StepRecord
from photon.errors import OutputError

#: Threads of the one process that the file tells of, from top to bottom.
LANES = {"host": 1, "upload": 2, "compute": 3, "readback": 4}
PID = 1


class TraceFile:
    """``write`` is what ``photon.Engine.run`` takes as ``trace``. Raises ``OutputError`` where the file cannot be
    written."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path
        self._zero: float | None = None
        try:
            self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - open until ``close``
            self._file.write("[\n" + _named("process_name", 0, name="photon-batch"))
        except OSError as error:
            raise self._failed(error) from error
        self._put(
            *(_named("thread_name", lane, name=name) for name, lane in LANES.items()),
            *(_named("thread_sort_index", lane, sort_index=lane) for lane in LANES.values()),
        )

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, record: StepRecord) -> None:
        """Append a step's operations, and the arrow from its launch by way of its forward to its commit."""
        if self._zero is None:
            self._zero = record.launch.start
        what = (
            f'"step": {record.number}, "kind": "{record.kind}", "slot": {record.slot}, "rows": {record.rows}, '
            f'"zombies": {record.zombies}, "pictures": {record.pictures}, "tokens": {record.tokens}, '
            f'"idle_ms": {1e3 * record.idle:.6f}, "held_ms": {1e3 * record.held:.6f}'
        )
        self._put(
            self._slice("host", f"launch {record.kind}", record.launch, what),
            self._slice("host", "finalize", record.finalize, what),
            self._slice("host", "wait", record.wait, what),
            self._slice("host", "commit", record.commit, what),
            *(self._slice("upload", "upload", span, what) for span in record.uploads),
            self._slice("compute", record.kind, record.forward, what),
            self._slice("compute", "sample", record.sample, what),
            self._slice("readback", "copy", record.copy, what),
            self._arrow("s", "host", record.launch.start, record.number),
            self._arrow("t", "compute", record.forward.start, record.number),
            self._arrow("f", "host", record.commit.start, record.number),
        )

    def close(self) -> None:
        """Complete the file."""
        if self._file.closed:
            return
        try:
            with self._file:
                self._file.write("\n]\n")
        except OSError as error:
            raise self._failed(error) from error

    def _put(self, *events: str) -> None:
        try:
            self._file.write("".join(f",\n{event}" for event in events if event))
        except OSError as error:
            raise self._failed(error) from error

    # Formatted by hand: the engine's thread writes, and would spend several times as long on dictionaries.

    def _slice(self, lane: str, name: str, span: Span | None, what: str) -> str:
        if span is None:
            return ""
        return (
            f'{{"name": "{name}", "cat": "step", "ph": "X", "ts": {self._at(span.start):.3f}, '
            f'"dur": {1e6 * span.seconds:.3f}, "pid": {PID}, "tid": {LANES[lane]}, "args": {{{what}}}}}'
        )

    def _arrow(self, phase: str, lane: str, when: float, number: int) -> str:
        """Binds to the slice that it starts in."""
        return (
            f'{{"name": "step", "cat": "step", "ph": "{phase}", "bp": "e", "id": {number}, '
            f'"ts": {self._at(when):.3f}, "pid": {PID}, "tid": {LANES[lane]}}}'
        )

    def _at(self, when: float) -> float:
        """Microseconds since the first launch."""
        return 1e6 * (when - (self._zero or 0.0))

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write the trace {self._path}: {error.strerror or error}")


def _named(what: str, lane: int, **arguments: object) -> str:
    return json.dumps({"name": what, "ph": "M", "ts": 0, "pid": PID, "tid": lane, "args": arguments})
