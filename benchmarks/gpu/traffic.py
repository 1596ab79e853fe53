"""Requests without end at a steady rate, and what the engine's own trace says of a stretch of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from statistics import mean, median

from benchmarks.gpu.rows import Figure
from photon.core import Image, Request
from photon.engine.engine import Engine
from photon.engine.record import StepRecord

_MAX_TOKENS = 220
"""Twice what the texts have: the engine reserves pages for the cap, and the published cap would leave it too few for 32
rows."""


@dataclass(frozen=True, slots=True)
class Mix:
    """``questions`` of detect to a picture, or one text about each. ``source``: the encoded picture."""

    skill: str = "detect"
    questions: int = 1
    source: bytes = b""

    def requests(self) -> Iterator[Request]:
        for number in count():
            image = Image(self.source)
            for question in range(self.questions):
                if self.skill == "detect":
                    yield Request((number, question), image, "detect", f"thing {question}")
                else:
                    yield Request(
                        (number, question), image, "query", "What is in this picture?", max_tokens=_MAX_TOKENS
                    )


@dataclass(frozen=True, slots=True)
class Stretch:
    """``records``: the steps launched within ``seconds`` in which ``answers`` came."""

    records: list[StepRecord]
    answers: int
    seconds: float


def steady(engine: Engine, requests: Iterator[Request], *, inside: int, warm_up: int, seconds: float) -> Stretch:
    """Answer ``requests``, ``inside`` of them at a time: ``warm_up`` answers first, then a stretch of ``seconds``. What
    is inside after that is answered too. Raises ``RuntimeError`` for a request that fails."""
    room, stop = threading.Semaphore(inside), threading.Event()
    records: list[StepRecord] = []

    def feed() -> Iterator[Request]:
        for request in requests:
            room.acquire()
            if stop.is_set():
                return
            yield request

    answers, before, began, ended = 0, 0, 0.0, 0.0
    for result in engine.run(feed(), trace=records.append):
        if result.error is not None:
            raise RuntimeError(f"request {result.id} failed: {result.error.code}: {result.error.message}")
        room.release()
        if stop.is_set():
            continue
        answers += 1
        now = time.perf_counter()
        if not began and answers >= warm_up:
            before, began = answers, now
        elif began and now - began >= seconds:
            ended = now
            stop.set()
    within = [record for record in records if began <= record.launch.start <= ended]
    return Stretch(within, answers - before, ended - began)


def figures(stretch: Stretch) -> dict[str, Figure]:
    """Requests per second, and of the steps: milliseconds from end to end of decode steps that follow two more, and how
    long the compute stream stood still a step, by the events around its operations."""
    records = stretch.records
    told = {"requests": Figure(stretch.answers / stretch.seconds, "1/s")}
    ends = [(record.sample or record.forward).end for record in records]
    settled = [
        ends[at] - ends[at - 1]
        for at in range(2, len(records))
        if all(record.kind == "decode" for record in records[at - 2 : at + 1])
    ]
    if settled:
        told["decode step"] = Figure(1e3 * median(settled), "ms")
    if records:
        told["idle per step"] = Figure(1e3 * mean(record.idle + record.held for record in records[1:] or records), "ms")
        rows = [record.rows for record in records if record.kind == "decode"]
        if rows:
            told["rows per decode step"] = Figure(mean(rows), "rows")
        sampled = sum(record.rows for record in records)
        told["zombies"] = Figure(100 * sum(record.zombies for record in records) / max(1, sampled), "% of rows")
    return told
