"""How a run shows that it is alive: a bar on a terminal, a plain line each half minute elsewhere, or nothing.

Everything goes to standard error; standard output is the CLI's, for JSON.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from photon.job.tally import Tally

if TYPE_CHECKING:
    from tqdm import tqdm

#: Seconds between two plain lines.
LINE_EVERY = 30.0


class Progress(Protocol):
    """What ``run`` tells: the number of rows to come (None when unknown), each finished row, the end."""

    def start(self, total: int | None) -> None: ...

    def update(self, tally: Tally) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Shows nothing."""

    def start(self, total: int | None) -> None:
        pass

    def update(self, tally: Tally) -> None:
        pass

    def close(self) -> None:
        pass


class Bar:
    """A tqdm bar: rows done, rate, time left, requests a second and failures."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: tqdm[Any] | None = None

    def start(self, total: int | None) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit="image", file=self._stream, dynamic_ncols=True, smoothing=0.1)

    def update(self, tally: Tally) -> None:
        assert self._bar is not None  # start comes first
        rate = tally.requests / max(tally.seconds, 1e-9)
        self._bar.set_postfix_str(f"{rate:.1f} requests/s, {tally.failed} failed", refresh=False)
        self._bar.update(tally.rows - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:  # a run may end before it starts to read
            self._bar.close()


class Lines:
    """One line each ``LINE_EVERY`` seconds, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def start(self, total: int | None) -> None:
        self._total = total
        self._last = time.monotonic()

    def update(self, tally: Tally) -> None:
        now = time.monotonic()
        if now - self._last >= LINE_EVERY:
            self._last = now
            print(progress_line(tally, self._total), file=self._stream, flush=True)

    def close(self) -> None:
        pass


def progress_line(tally: Tally, total: int | None) -> str:
    """``1,200 of 10,000 images, 40.1 images/s, 160.2 requests/s, 3 failed, 0:03:40 left``."""
    seconds = max(tally.seconds, 1e-9)
    rate = tally.rows / seconds
    parts = [
        f"{tally.rows:,} of {total:,} images" if total is not None else f"{tally.rows:,} images",
        f"{rate:.1f} images/s",
        f"{tally.requests / seconds:.1f} requests/s",
        f"{tally.failed:,} failed",
    ]
    if total is not None and rate > 0:
        parts.append(f"{clock((total - tally.rows) / rate)} left")
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def progress_for(stream: TextIO | None = None, *, shown: bool = True) -> Progress:
    """The progress that suits ``stream`` (standard error by default)."""
    stream = stream or sys.stderr
    if not shown:
        return Silent()
    return Bar(stream) if stream.isatty() else Lines(stream)
