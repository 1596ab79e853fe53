"""From the caller's iterable to requests that are ready to run, off the engine's thread and within bounds.

One feeder thread pulls requests and writes their scripts; a pool of threads prepares pictures, each once for all
requests that share it. At most ``budget`` bytes of encoded pictures and ``max_ahead`` requests are inside at a time:
beyond that the feeder stops pulling. Knows nothing of models: what "prepare" and "script" mean is passed in.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from photon.core import Failure, Image, ImageInfo, Request
from photon.errors import RowError
from photon.images.sample import sample_of


@dataclass(eq=False, slots=True)
class Prepared:
    """One picture, ready: what is known of it and what the engine needs of it (``content``), or why it failed."""

    image: Image
    info: ImageInfo | None = None
    content: Any = None
    failure: Failure | None = None
    ready: bool = False
    when: float = 0.0
    undelivered: int = 0

    def take_content(self) -> Any:
        """The content, once: whoever takes it has to let go of it."""
        content, self.content = self.content, None
        return content


class Arrival(NamedTuple):
    request: Request
    script: Any
    prepared: Prepared | None
    submitted: float
    failure: Failure | None


class Intake:
    def __init__(
        self,
        requests: Iterable[Request],
        *,
        prepare: Callable[[Image], tuple[ImageInfo, Any]],
        script: Callable[[Request], Any],
        budget: int = 256 << 20,
        max_ahead: int = 1024,
        workers: int | None = None,
    ) -> None:
        """``prepare`` gives what is known of a picture and its content, and may block while there is no room for it.

        Both callables may raise ``RowError``, which fails the requests concerned; anything else fails the run.
        """
        self._prepare, self._script = prepare, script
        self._budget, self._max_ahead = budget, max_ahead
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)  # what the engine waits for
        self._left = threading.Condition(self._lock)  # what the feeder waits for
        self._ready: deque[Arrival] = deque()
        self._pictures: dict[int, Prepared] = {}
        self._waiting: dict[Prepared, list[Arrival]] = {}
        self._pulled: Request | None = None  # and not taken in yet
        self._charged = 0
        self._inside = 0
        self._fed = False
        self._closed = False
        self._error: BaseException | None = None
        self._to_prepare: queue.SimpleQueue[Prepared | None] = queue.SimpleQueue()
        # Daemons, all of them: one that hangs must not keep the process from ending.
        self._workers = [
            threading.Thread(target=self._serve, name=f"photon-prepare-{n}", daemon=True)
            for n in range(workers or min(16, len(os.sched_getaffinity(0))))
        ]
        feeder = threading.Thread(target=self._feed, args=(requests,), name="photon-feeder", daemon=True)
        for thread in (*self._workers, feeder):
            thread.start()

    # The engine's side.

    def poll(self, *, wait: bool, timeout: float | None = None) -> list[Arrival]:
        """What has become ready. With ``wait``, blocks until something has or nothing more will come, or for
        ``timeout`` seconds."""
        with self._lock:
            if wait:
                self._arrived.wait_for(lambda: self._ready or self._drained or self._error is not None, timeout)
            if self._error is not None:
                raise self._error
            arrivals = list(self._ready)
            self._ready.clear()
            for arrival in arrivals:
                if arrival.prepared is not None:
                    arrival.prepared.undelivered -= 1
            return arrivals

    @property
    def exhausted(self) -> bool:
        """Nothing is inside and nothing more will come, and nothing went wrong that ``poll`` has yet to raise."""
        with self._lock:
            return self._drained and not self._ready and self._error is None

    @property
    def inside(self) -> int:
        """Requests that were taken in and not answered."""
        with self._lock:
            return self._inside

    @property
    def _drained(self) -> bool:
        return self._fed and not self._waiting

    def holds(self, request: Request) -> bool:
        """Whether that very request is on its way to ``poll``."""
        with self._lock:
            coming = (arrival for arrivals in (self._ready, *self._waiting.values()) for arrival in arrivals)
            return self._pulled is request or any(arrival.request is request for arrival in coming)

    def finished(self, prepared: Prepared | None = None) -> None:
        """A request has been answered; another may come in. The engine holds nothing of ``prepared`` any more."""
        with self._lock:
            self._inside -= 1
            if prepared is not None:
                self._forget(prepared)
            self._left.notify()

    def forget(self, prepared: Prepared) -> bool:
        """The engine holds nothing of this picture any more. False if a request for it has come in meanwhile."""
        with self._lock:
            gone = self._forget(prepared)
            self._left.notify()
            return gone

    def _forget(self, prepared: Prepared) -> bool:
        if prepared.undelivered:
            return False
        if self._pictures.get(id(prepared.image)) is prepared:  # not one that was made for it since
            del self._pictures[id(prepared.image)]
            self._charged -= _encoded_bytes(prepared.image)
        return True

    def close(self, *, wait: bool = True) -> None:
        """Stop pulling and preparing. With ``wait``, waits for pictures that are being prepared; never for the caller's
        iterable."""
        with self._lock:
            self._closed = True
            self._left.notify()
        for _ in self._workers:
            self._to_prepare.put(None)
        for worker in self._workers if wait else ():
            worker.join()

    # The feeder's and the workers' side.

    def _feed(self, requests: Iterable[Request]) -> None:
        try:
            for request in requests:
                if not self._take(request):
                    return
        except BaseException as error:
            self._fail(error)
        finally:
            with self._lock:
                self._fed = True
                self._arrived.notify()

    def _take(self, request: Request) -> bool:
        submitted = time.monotonic()
        try:
            script, failure = self._script(request), None
        except RowError as error:
            script, failure = None, Failure(error.code, str(error))
        with self._lock:
            self._pulled = request
            while not self._closed and not self._room(request.image):
                self._left.wait()
            self._pulled = None
            if self._closed:
                return False
            self._inside += 1
            if request.image is None:
                self._ready.append(Arrival(request, script, None, submitted, failure))
                self._arrived.notify()
                return True
            prepared = self._pictures.get(id(request.image))
            if fresh := prepared is None:
                prepared = self._pictures[id(request.image)] = Prepared(request.image)
                self._charged += _encoded_bytes(request.image)
            prepared.undelivered += 1
            arrival = Arrival(request, script, prepared, submitted, failure)
            if prepared.ready:
                self._ready.append(arrival)
                self._arrived.notify()
            else:
                self._waiting.setdefault(prepared, []).append(arrival)
            if fresh:
                self._to_prepare.put(prepared)
        return True

    def _room(self, image: Image | None) -> bool:
        """A picture that is inside costs nothing more; one that is larger than the budget comes in alone."""
        if self._inside >= self._max_ahead:
            return False
        if image is None or id(image) in self._pictures or not self._charged:
            return True
        return self._charged + _encoded_bytes(image) <= self._budget

    def _serve(self) -> None:
        while (prepared := self._to_prepare.get()) is not None:
            if not self._closed:
                self._work(prepared)

    def _work(self, prepared: Prepared) -> None:
        try:
            prepared.info, prepared.content = self._prepare(prepared.image)
        except RowError as error:
            prepared.failure = Failure(error.code, str(error), sample_of(prepared.image.source))
        except BaseException as error:
            self._fail(error)
            return
        with self._lock:
            prepared.ready, prepared.when = True, time.monotonic()
            self._ready.extend(self._waiting.pop(prepared))
            self._arrived.notify()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = self._error or error
            self._arrived.notify()


def _encoded_bytes(image: Image) -> int:
    return len(image.source) if isinstance(image.source, bytes) else 0
