"""A contact sheet to look at: scenes with their true boxes and a few questions under each.

``python training/sheet.py OUT.png [--recipe mixed] [--seed 0] [--columns 6] [--rows 5] [--plain]``
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

# As a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from training.questions import questions
from training.scene import Question, Scene
from training.scenes import RECIPES, Recipe, make_scene

CELL = 330
"""Pixels of a scene's square in the sheet."""
LINES = 5
LINE = 13


def boxed(scene: Scene, side: int, boxes: bool = True) -> Image.Image:
    """The scene, scaled to fit ``side`` pixels, with its true boxes in black on white."""
    picture = Image.fromarray(scene.pixels)
    scale = side / max(picture.size)
    picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    width, height = picture.size
    for thing in scene.objects if boxes else ():
        x_min, y_min, x_max, y_max = thing.box
        edge = (round(x_min * width) - 1, round(y_min * height) - 1, round(x_max * width), round(y_max * height))
        pen.rectangle((edge[0] - 1, edge[1] - 1, edge[2] + 1, edge[3] + 1), outline="white")
        pen.rectangle(edge, outline="black")
    return picture


def line(question: Question) -> str:
    """A question and its answer in one line."""
    asked = question.prompt or question.length
    answer = question.text or len(question.boxes) or len(question.points) or "none"
    return f"{question.skill} {asked} -> {answer}"


def make_sheet(recipe: Recipe, seed: int, columns: int, rows: int, boxes: bool = True) -> Image.Image:
    """Scenes of the seeds from ``seed`` on, row by row."""
    sheet = Image.new("RGB", (columns * CELL, rows * (CELL + LINES * LINE)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(10)
    for i in range(columns * rows):
        scene = make_scene(seed + i, recipe)
        x, y = i % columns * CELL, i // columns * (CELL + LINES * LINE)
        sheet.paste(boxed(scene, CELL - 8, boxes), (x + 4, y + 4))
        asked = [f"seed {scene.seed}, {scene.pixels.shape[1]} x {scene.pixels.shape[0]}, {len(scene.objects)} things"]
        asked += [line(question) for question in questions(scene, np.random.default_rng(scene.seed), LINES - 1)]
        for j, words in enumerate(asked):
            pen.text((x + 4, y + CELL - 2 + j * LINE), words[:62], fill="black", font=font)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="mixed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="without boxes")
    args = parser.parse_args()
    make_sheet(RECIPES[args.recipe], args.seed, args.columns, args.rows, not args.plain).save(args.out)


if __name__ == "__main__":
    main()
