"""The model in the box through the engine: what it does not find, crowds that touch, and that nothing but the picture
and the question matters. How good it is, docs/model-in-the-box.md says."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw
import pytest

import photon
from photon.core import Box, Request, Result, SkillName
from photon.job.questions import Questions
from photon.job.sources import open_source
from photon.manifest.load import load_manifest
from photon.skills.repetition import iou
from training.scene import COLOURS, SHAPES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> Iterator[photon.Engine]:
    engine = photon.Engine.load("photon://shapes")
    yield engine
    engine.close()


def twenty(kind: str, side: int) -> photon.Image:
    """Four rows of five things of ``side`` pixels that touch."""
    around = 6
    grey = (205, 205, 215)
    drawn = PIL.Image.new("RGB", (5 * side + 2 * around, 4 * side + 2 * around), grey)
    pen = PIL.ImageDraw.Draw(drawn)
    for i in range(20):
        x, y = around + i % 5 * side, around + i // 5 * side
        box = (x, y, x + side - 1, y + side - 1)
        paint = ((200, 30, 40), (30, 60, 200), (240, 220, 40))[i % 3]
        if kind == "square":
            pen.rectangle(box, fill=paint)
        elif kind == "triangle":
            pen.polygon([(x, box[3]), (x + side // 2, y), (box[2], box[3])], fill=paint)
        else:
            pen.ellipse(box, fill=paint)
        if kind == "ring":
            quarter = side // 4
            pen.ellipse((x + quarter, y + quarter, box[2] - quarter, box[3] - quarter), fill=grey)
    return photon.Image(drawn)


def test_the_docs_tell_the_digest_of_the_weights() -> None:
    weights = ROOT / "photon" / "assets" / "shapes" / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert f"`{digest}`" in (ROOT / "docs" / "model-in-the-box.md").read_text()
    assert weights.stat().st_size <= 15e6


@pytest.mark.parametrize("grey", [40, 128, 215])
def test_nothing_there_is_an_empty_list(engine: photon.Engine, grey: int) -> None:
    image = photon.Image(PIL.Image.fromarray(np.full((150, 200, 3), grey, np.uint8)))
    names = [*SHAPES, "digit", *(f"{colour} {kind}" for colour in COLOURS for kind in SHAPES)]
    asked = [Request((skill, name), image, skill, name) for skill in ("detect", "point") for name in names]
    for result in engine.run(asked):
        assert (result.objects if result.id[0] == "detect" else result.points) == [], result.id
        assert result.finish_reason == "stop"


def same(a: Box, b: Box) -> bool:
    return iou(*((box.x_min, box.y_min, box.x_max, box.y_max) for box in (a, b))) > 0.8


@pytest.mark.parametrize("kind", ["circle", "square", "ring", "triangle"])
def test_twenty_things_that_touch_neither_loop_nor_repeat(engine: photon.Engine, kind: str) -> None:
    """It does not find all of them, but two thirds at least."""
    asked = [Request(side, twenty(kind, side), "detect", kind) for side in (18, 22, 30, 45)]
    for result in engine.run(asked):
        assert result.finish_reason == "stop"
        assert result.objects is not None
        boxes = list(result.objects)
        assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if same(a, b)]
        assert 14 <= len(boxes) <= 20


@pytest.mark.parametrize("skill", ["detect", "point"])
def test_max_objects_is_exact_and_said(engine: photon.Engine, skill: SkillName) -> None:
    image = twenty("square", 30)
    asked = [Request(most, image, skill, "square", max_objects=most) for most in (1, 4, 7)]
    for result in engine.run(asked):
        found = result.objects if skill == "detect" else result.points
        assert found is not None
        assert len(found) == result.id
        assert result.finish_reason == "max_objects"


def demo_requests(monkeypatch: pytest.MonkeyPatch, rows: int) -> list[Request]:
    monkeypatch.chdir(ROOT)
    manifest = load_manifest("manifests/demo.yaml")
    questions = Questions(manifest.tasks, manifest.run.seed)
    return [request for row in open_source(manifest).rows(rows) for request in questions.about(row, row.index).requests]


def answers(asked: list[Request], **settings: int) -> dict[object, tuple[object, ...]]:
    engine = photon.Engine.load("photon://shapes", dtype="float32", **settings)  # type: ignore[arg-type]
    try:
        return {result.id: exact(result) for result in engine.run(asked)}
    finally:
        engine.close()


def exact(result: Result) -> tuple[object, ...]:
    """All of an answer that must not move. Scores may, in the last bits."""
    boxes = [(b.x_min, b.y_min, b.x_max, b.y_max) for b in result.objects or ()]
    points = [(p.x, p.y) for p in result.points or ()]
    return result.error, tuple(result.token_ids), result.text, boxes, points, result.finish_reason


@pytest.mark.parametrize("rows", [5, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "half"])
def test_depth_batch_and_order_change_nothing_on_the_demo(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    asked = demo_requests(monkeypatch, rows)
    plain = answers(asked)
    assert len(plain) == len(asked) == 11 * rows
    random.Random(1).shuffle(asked)
    assert answers(asked, depth=1, max_batch=5) == plain
    if rows < 100:  # half a minute for each run of so many
        random.Random(2).shuffle(asked)
        assert answers(asked, depth=2, max_batch=40) == plain
