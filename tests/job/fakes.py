"""Engines for tests of the job: scripted answers, in an order and with an end of the test's choosing."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterable, Iterator

from photon.core import Image, ImageInfo, Request, Result
from photon.engine.null import scripted


class ShufflingEngine:
    """Answers out of order from a window of requests; decodes nothing.

    After ``stop_after`` answers it raises ``error``, or just ends when there is none. ``most_alive`` is the largest
    number of images that were still held by anyone at one time.
    """

    fingerprint = "shuffling"
    statistics = None

    def __init__(self, window: int = 7, stop_after: int | None = None, error: BaseException | None = None) -> None:
        self.facts: dict[str, object] = {}
        self.most_alive = 0
        self.left_early = False
        self._window, self._stop_after, self._error = window, stop_after, error
        self._images: weakref.WeakSet[Image] = weakref.WeakSet()

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        try:
            for count, request in enumerate(self._shuffled(requests)):
                if count == self._stop_after:
                    if self._error is not None:
                        raise self._error
                    return
                yield Result(request.id, image=ImageInfo(40, 30), **scripted(request))
        except GeneratorExit:
            self.left_early = True
            raise

    def close(self) -> None:
        raise AssertionError("an engine that was handed in is its owner's to close")

    def _shuffled(self, requests: Iterable[Request]) -> Iterator[Request]:
        dice, waiting = random.Random(7), []
        for request in requests:
            if request.image is not None:
                self._images.add(request.image)
            self.most_alive = max(self.most_alive, len(self._images))
            waiting.append(request)
            del request
            if len(waiting) == self._window:
                yield waiting.pop(dice.randrange(len(waiting)))
        dice.shuffle(waiting)
        while waiting:
            yield waiting.pop()
