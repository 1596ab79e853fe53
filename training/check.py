"""How good the model in the box is on scenes that it was not trained on, through the engine that ships.

python training/check.py [--model training/checkpoint] [--scenes 500] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from photon import Engine, Image, Request, Result
from photon.skills.repetition import iou
from training.questions import questions
from training.scene import Box, Question
from training.scenes import MIXED, RECIPES, Recipe, held_out, make_scene

CHECKPOINT = Path(__file__).parent / "checkpoint"
MOST_COUNTED = 6
IOU = 0.5
MOST_OBJECTS, MOST_TOKENS = 30, 200
"""More than any right answer has."""


@dataclass(slots=True)
class Tally:
    """Counts by name: ``shape.hit``, ``shape.found``, ``shape.there`` of boxes, ``point.right`` and so on."""

    counts: Counter[str] = field(default_factory=Counter)

    def share(self, name: str) -> float | None:
        asked = self.counts[f"{name}.asked"]
        return self.counts[f"{name}.right"] / asked if asked else None

    def answer(self, name: str, right: bool) -> None:
        self.counts[f"{name}.asked"] += 1
        self.counts[f"{name}.right"] += right

    def f1(self, *groups: str) -> float | None:
        hits, found, there = (sum(self.counts[f"{g}.{what}"] for g in groups) for what in ("hit", "found", "there"))
        return 2 * hits / (found + there) if found + there else None

    def figures(self) -> dict[str, float | None]:
        groups = ("shape", "digit", "any", "absent")
        out = {f"detect F1 {group}": self.f1(group) for group in groups[:3]}
        out["detect F1 all"] = self.f1(*groups)
        names = ("point precision", "point recall", "count", "colour", "which", "yes", "empty")
        for name in (*names, "caption short", "caption normal", "caption long"):
            out[name] = self.share(name)
        return out


def hits(found: list[Box], there: tuple[Box, ...]) -> int:
    """Pairs at IOU or more, the best first, each box in one pair only."""
    pairs = sorted(((iou(a, b), i, j) for i, a in enumerate(found) for j, b in enumerate(there)), reverse=True)
    used_found: set[int] = set()
    used_there: set[int] = set()
    for overlap, i, j in pairs:
        if overlap >= IOU and i not in used_found and j not in used_there:
            used_found.add(i)
            used_there.add(j)
    return len(used_there)


def count_answer(tally: Tally, question: Question, result: Result, boxes: list[Box]) -> None:
    """``boxes``: for point, those of the things asked for."""
    if result.error is not None:
        raise RuntimeError(f"{question}: {result.error}")
    group = question.group
    if question.skill == "detect":
        found = [(b.x_min, b.y_min, b.x_max, b.y_max) for b in result.objects or ()]
        tally.counts[f"{group}.hit"] += hits(found, question.boxes)
        tally.counts[f"{group}.found"] += len(found)
        tally.counts[f"{group}.there"] += len(question.boxes)
        if not question.boxes:
            tally.answer("empty", not found)
    elif question.skill == "point":
        points = [(p.x, p.y) for p in result.points or ()]
        if not question.points:
            tally.answer("empty", not points)
        for box in boxes:
            tally.answer("point recall", any(_inside(point, box) for point in points))
        for point in points:
            tally.answer("point precision", any(_inside(point, box) for box in boxes))
    elif group == "count":
        number = int(question.text)
        if number <= MOST_COUNTED:
            tally.answer("count", result.text == question.text)
    else:
        tally.answer(f"caption {question.length}" if group == "caption" else group, result.text == question.text)


def _inside(point: tuple[float, float], box: Box) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def measure(folder: Path, recipe: Recipe = MIXED, scenes: int = 500, per_scene: int = 10, first: int = 0) -> Tally:
    asked: dict[int, tuple[Question, list[Box]]] = {}

    def requests() -> Iterator[Request]:
        for n in range(first, first + scenes):
            scene = make_scene(held_out(n), recipe)
            image = Image(PIL.Image.fromarray(scene.pixels))
            for question in questions(scene, np.random.default_rng((n, 2)), per_scene):
                boxes = [thing.box for thing in scene.objects if thing.centre in question.points]
                asked[len(asked)] = question, boxes
                settings: dict[str, Any] = {"max_objects": MOST_OBJECTS, "max_tokens": MOST_TOKENS}
                if question.skill == "caption":
                    settings["length"] = question.length
                yield Request(len(asked) - 1, image, question.skill, question.prompt, **settings)

    tally = Tally()
    engine = Engine.load(str(folder), device="cpu", dtype="float32")
    try:
        for result in engine.run(requests()):
            assert isinstance(result.id, int)
            count_answer(tally, asked[result.id][0], result, asked[result.id][1])
    finally:
        engine.close()
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=CHECKPOINT)
    parser.add_argument("--scenes", type=int, default=500)
    parser.add_argument("--recipe", choices=sorted(RECIPES), default=MIXED.name)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    start = time.perf_counter()
    tally = measure(options.model, RECIPES[options.recipe], options.scenes)
    figures = tally.figures()
    for name, value in figures.items():
        print(f"{name:20} {'-' if value is None else f'{value:.3f}'}")
    print(f"{options.scenes} scenes of {options.recipe} in {time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({"figures": figures, "counts": dict(tally.counts)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
