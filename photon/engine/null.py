"""``photon://null``: an engine without a model, for dry runs and for testing jobs at speed.

Pictures are decoded as for a real model, so that broken ones fail as they would; the answers are scripted, a function
of the request's id (in a job: the row's place in the plan), skill and prompt alone. Imports no torch.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from photon.core import Box, Image, ImageInfo, Point, Request, Result, Timings
from photon.engine.gate import DECODED_BYTES, ByteGate
from photon.engine.intake import Arrival, Intake
from photon.engine.record import Listener
from photon.images.decode import DecodePolicy, decode, decoded_bytes

_MOST_OBJECTS = 4
_NUMBERS = struct.Struct(f"<{1 + 4 * _MOST_OBJECTS}H")


class NullEngine:
    """Has the methods of ``photon.Engine``. Answers come in order of arrival."""

    fingerprint = "null-3"
    statistics = None

    def __init__(self, policy: DecodePolicy | None = None) -> None:
        self._policy = policy or DecodePolicy()
        self._gate = ByteGate(DECODED_BYTES)
        self.facts: dict[str, object] = {"fingerprint": self.fingerprint, "meaningless": True}

    def run(self, requests: Iterable[Request], *, trace: Listener | None = None) -> Iterator[Result]:
        """There are no steps to ``trace``."""
        intake = Intake(requests, prepare=self._prepare, script=lambda request: None)
        try:
            while not intake.exhausted:
                for arrival in intake.poll(wait=True):
                    result = _answer(arrival)
                    intake.finished(arrival.prepared)
                    yield result
        finally:
            intake.close()

    def close(self) -> None:
        """Nothing to stop."""

    def _prepare(self, image: Image) -> tuple[ImageInfo, None]:
        with self._gate.hold(decoded_bytes(image.source, self._policy)):
            return decode(image.source, self._policy)[1], None


def _answer(arrival: Arrival) -> Result:
    request, prepared = arrival.request, arrival.prepared
    info = prepared.info if prepared is not None else None
    if prepared is not None and prepared.failure is not None:
        return Result(request.id, error=prepared.failure)
    prepared_at = prepared.when if prepared is not None else arrival.submitted
    timings = Timings(arrival.submitted, prepared_at, prepared_at, prepared_at)
    return Result(request.id, image=info, timings=timings, **scripted(request))


def scripted(request: Request) -> dict[str, Any]:
    """The answer that this request gets, whoever asks and whenever: its skill's field and the counts."""
    dice = _dice(f"{request.id!r} {request.skill} {request.prompt}")
    if request.skill in ("caption", "query"):
        words = ["scripted", request.skill, f"{dice[0] % 1000:03}"]
        return {"text": " ".join(words), "finish_reason": "stop", "token_ids": (), "n_tokens": len(words)}
    count = min(dice[0] % (_MOST_OBJECTS + 1), request.settings.max_objects)
    reason = "max_objects" if count == request.settings.max_objects else "stop"
    if request.skill == "detect":
        objects = [_box(request.prompt, *dice[n : n + 4]) for n in range(1, 1 + 4 * count, 4)]
        return {"objects": objects, "finish_reason": reason, "n_tokens": 3 * count}
    bins = [drawn % 1024 / 1024 for drawn in dice[1 : 1 + 2 * count]]
    points = [Point(x, y, request.prompt, 0.25, 0.5, 0.5) for x, y in zip(bins[::2], bins[1::2], strict=True)]
    return {"points": points, "finish_reason": reason, "n_tokens": 2 * count}


def _dice(key: str) -> tuple[int, ...]:
    """As many numbers below 2^16 as any answer takes, drawn by ``key``."""
    return _NUMBERS.unpack(hashlib.blake2b(key.encode(), digest_size=_NUMBERS.size).digest())


def _box(label: str, x: float, y: float, width: float, height: float) -> Box:
    """Of four dice. Edges like a real model's: exact binary fractions, and now and then outside the picture."""
    x, y = x % 1024 / 1024, y % 1024 / 1024
    right, down = (width % 511 + 1) / 2048, (height % 511 + 1) / 2048  # half of what the box is wide and high
    return Box(x - right, y - down, x + right, y + down, label, 0.25, 0.5, 0.5)
