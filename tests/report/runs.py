"""Small runs to look at: pictures that can be told apart, and an engine that answers as it is told."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from photon.core import Box, Failure, Point, Request, Result
from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode
from photon.job.run import run
from photon.manifest.load import load_manifest

TASKS = """
  - {name: things, type: detect, objects: [cat, dog]}
  - {name: spots, type: point, objects: [cat]}
  - {name: ask, type: query, question: "Is it {subject}?"}"""


class Told:
    """``answers``: by row and task name, what to say; [] and "no" where there is nothing. Pictures are decoded."""

    fingerprint = "told"
    statistics = None

    def __init__(self, answers: Mapping[int, Mapping[str, Any]], names: Sequence[str], policy: DecodePolicy) -> None:
        self.facts: dict[str, object] = {}
        self._answers, self._names, self._policy = answers, names, policy

    def run(self, requests: Iterable[Request], *, trace: None = None) -> Iterator[Result]:
        for request in requests:
            index, number, _ = request.id  # type: ignore[misc]
            said = self._answers.get(index, {}).get(self._names[number])
            try:
                info = decode(request.image.source, self._policy)[1]  # type: ignore[union-attr]
            except ImageError as error:
                yield Result(request.id, error=Failure(error.code, str(error)))
                continue
            yield Result(request.id, image=info, finish_reason="stop", n_tokens=1, **_field(request, said))

    def close(self) -> None:
        raise AssertionError("an engine that was handed in is its owner's to close")


def _field(request: Request, said: Any) -> dict[str, Any]:
    if request.skill in ("query", "caption"):
        return {"text": "no" if said is None else said}
    mine = [found for found in said or () if found.label == request.prompt]
    return {"objects" if request.skill == "detect" else "points": mine}


def take_back(*chunks: int) -> None:
    """As if these chunks of the run in ``out`` were still to be done."""
    for number in chunks:
        Path(f"out/data/part-{number:06}.arrow").unlink()
    for ledger in Path("out/ledger").iterdir():
        lines = ledger.read_text(encoding="utf-8").splitlines(keepends=True)
        left = [line for line in lines if json.loads(line).get("chunk") not in chunks]
        ledger.write_text("".join(left), encoding="utf-8")


def box(label: str, *corners: float, score: float = 0.75) -> Box:
    return Box(*corners, label, score, score, 1.0)


def point(label: str, x: float, y: float, score: float = 0.75) -> Point:
    return Point(x, y, label, score, score, 1.0)


def told_run(file: Path, answers: Mapping[int, Mapping[str, Any]] | None = None, *, fresh: bool = True) -> None:
    """Runs the manifest in ``file`` with ``Told``."""
    manifest = load_manifest(file)
    policy = DecodePolicy(**manifest.image.model_dump())
    run(manifest, engine=Told(answers or {}, [task.name for task in manifest.tasks], policy), fresh=fresh)


def shade(number: int) -> tuple[int, int, int]:
    """A grey that tells a picture's row, up to 80."""
    return (3 * number, 3 * number, 3 * number)


def plain(number: int, size: tuple[int, int] = (40, 30)) -> bytes:
    return encoded(Image.new("RGB", size, shade(number)))


def encoded(picture: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", **options)
    return file.getvalue()


def pixels(path: Path) -> np.ndarray[Any, Any]:
    """[height, width, 3], uint8."""
    with Image.open(path) as picture:
        assert picture.mode == "RGB"
        return np.asarray(picture)


def is_colour(sheet: np.ndarray[Any, Any], colour: tuple[int, int, int], off: int = 0) -> np.ndarray[Any, Any]:
    """[height, width], whether a pixel is ``colour``, or ``off`` from it at most in any channel."""
    apart = np.abs(sheet.astype(int) - np.array(colour)).max(axis=-1)
    return np.asarray(apart <= off)
