"""Scenes are the same everywhere, their boxes bound what is drawn, and what is drawn can be seen."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from photon.models.tiling import select_tiling
from training.backgrounds import CONTRAST, contrast
from training.composition import HIDDEN, HIDDEN_DIGIT, reading_order
from training.draw import (
    PALETTE,
    SAMPLES,
    TRAINING_DIGITS,
    Paint,
    digit_scans,
    make_glyph,
    mix_paint,
    paint_stamp,
    place,
)
from training.scene import COLOURS, DIGITS, KINDS, SHAPES, Scene
from training.scenes import (
    CROWD,
    FEW,
    HELD_OUT_SEED,
    MIXED,
    RECIPES,
    SEEN,
    SEEN_IN_CROWD,
    SINGLE,
    TRAINING_SEEDS,
    VISION,
    Recipe,
    compose,
    held_out,
    make_scene,
    picture_sizes,
)

pytest.importorskip("sklearn")

CROWDS = dataclasses.replace(MIXED, empty=0.0, crowds=1.0)


def digest(scene: Scene) -> str:
    return hashlib.sha256(scene.pixels.tobytes() + repr((scene.pixels.shape, scene.objects)).encode()).hexdigest()


@pytest.fixture(scope="module")
def mixed() -> list[Scene]:
    return [make_scene(seed, MIXED) for seed in range(90)]


def test_the_same_seed_gives_the_same_scene_in_any_order(mixed: list[Scene]) -> None:
    for seed in (37, 5, 11, 36):
        assert digest(make_scene(seed, MIXED)) == digest(mixed[seed])
    assert len({digest(scene) for scene in mixed}) == len(mixed)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scene_in_another_process() -> None:
    seeds = (3, held_out(8))
    code = (
        "import hashlib, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from training.scenes import RECIPES, make_scene\n"
        f"for scene in (make_scene(seed, recipe) for seed in {seeds} for recipe in RECIPES.values()):\n"
        "    told = scene.pixels.tobytes() + repr((scene.pixels.shape, scene.objects)).encode()\n"
        "    print(hashlib.sha256(told).hexdigest())\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parents[2])]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert told == [digest(make_scene(seed, recipe)) for seed in seeds for recipe in RECIPES.values()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outline", [False, True])
def test_a_box_is_tight_to_what_is_drawn(kind: str, outline: bool) -> None:
    rng = np.random.default_rng(1)
    for shorter in (8.0, 17.3, 60.0):
        glyph = make_glyph(kind, shorter, 120.0, rng, outline=outline)
        pixels = np.full((160, 170, 3), 128, np.uint8)
        stamp = place(glyph, int(rng.integers(40)), int(rng.integers(40)))
        paint_stamp(pixels, stamp, Paint((250.0, 250.0, 250.0)), rng)
        rows, cols = ((pixels != 128).any(axis=(2, 1 - axis)).nonzero()[0] for axis in (0, 1))
        drawn = cols[0], rows[0], cols[-1] + 1, rows[-1] + 1
        assert np.abs(np.subtract(drawn, stamp.box)).max() <= 1.0
        sides = np.array(glyph.size) / SAMPLES
        assert sides.max() <= 121
        assert sides.min() == pytest.approx(shorter, abs=1.0) or sides.max() == pytest.approx(120, abs=1.0)


@pytest.mark.parametrize("recipe", [FEW, MIXED, CROWDS], ids=["few", "mixed", "crowds"])
def test_what_is_seen_lies_in_its_box_and_is_most_of_the_thing(recipe: Recipe) -> None:
    for seed in range(40):
        picture = compose(seed, recipe)
        for i, (kind, _) in enumerate(picture.things):
            rows, cols = (picture.owner == i).nonzero()
            x_min, y_min, x_max, y_max = picture.boxes[i]
            assert len(rows) == picture.visible[i]
            assert len(rows) >= (1 - (HIDDEN_DIGIT if kind in DIGITS else HIDDEN)) * picture.areas[i]
            seen = np.array((cols.min(), rows.min(), cols.max() + 1, rows.max() + 1))
            spare = np.subtract(seen, (x_min, y_min, x_max, y_max)) * (1, 1, -1, -1)
            assert spare.min() >= -0.5
            if len(rows) == picture.areas[i]:  # thin tips fill less than half of their last pixels
                assert spare.max() <= 4


def test_objects_stand_left_to_right_and_in_a_column_downwards(mixed: list[Scene]) -> None:
    crowds = [make_scene(seed, CROWDS) for seed in range(20)]
    ties = 0
    for scene in mixed + crowds:
        assert list(scene.objects) == sorted(scene.objects, key=reading_order)
        for one, two in itertools.pairwise(scene.objects):
            (x, y), (other_x, other_y) = one.centre, two.centre
            assert x <= other_x + 1e-6
            if abs(x - other_x) < 1e-9:
                ties += 1
                assert y <= other_y
        assert all(
            0 <= low < high <= 1 for thing in scene.objects for low, high in zip(thing.box, thing.box[2:], strict=False)
        )
    assert ties


def test_recipes_keep_their_numbers(mixed: list[Scene]) -> None:
    assert {len(make_scene(seed, SINGLE).objects) for seed in range(60)} == {1}
    assert {len(make_scene(seed, FEW).objects) for seed in range(60)} == set(range(1, 7))
    counts = Counter(len(scene.objects) for scene in mixed)
    assert counts[0]
    assert max(counts) > 14
    assert set(counts) <= set(range(21))
    for seed in range(20):
        scene = make_scene(seed, CROWDS)
        assert CROWD <= len(scene.objects) <= 20
        assert len({thing.kind for thing in scene.objects}) == 1


def test_a_recipe_that_cannot_be_met_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.scenes.ATTEMPTS", 2)
    with pytest.raises(ValueError, match="have no place"):
        make_scene(
            0, dataclasses.replace(SINGLE, objects=(30, 30), sizes=(0.3, 0.3, 0.6), objects_in_one_tile=30, overlap=0)
        )


def test_sizes_keep_their_limits(mixed: list[Scene]) -> None:
    for scene in mixed:
        height, width = scene.pixels.shape[:2]
        rows, cols = select_tiling(height, width, VISION)
        sight = (cols * VISION.window + VISION.margin) / width, (rows * VISION.window + VISION.margin) / height
        for thing in scene.objects:
            sides = (thing.box[2] - thing.box[0]) * width, (thing.box[3] - thing.box[1]) * height
            assert max(sides) <= 0.61 * min(height, width)
            if thing.kind in SHAPES:
                assert min(sides) >= (0.08 if rows * cols == 1 else 0.05) * min(height, width) - 0.5
            assert min(sides[0] * sight[0], sides[1] * sight[1]) >= (SEEN - 1 if thing.kind in SHAPES else 3)


def test_things_in_crowds_are_no_smaller_than_a_patch() -> None:
    assert VISION.enc_patch_size == SEEN_IN_CROWD
    for seed in (*range(40), *map(held_out, range(40))):
        scene = make_scene(seed, CROWDS)
        height, width = scene.pixels.shape[:2]
        rows, cols = select_tiling(height, width, VISION)
        sight = (cols * VISION.window + VISION.margin) / width, (rows * VISION.window + VISION.margin) / height
        for thing in scene.objects:
            sides = (thing.box[2] - thing.box[0]) * width * sight[0], (thing.box[3] - thing.box[1]) * height * sight[1]
            assert min(sides) >= SEEN_IN_CROWD - 1


def test_every_tiling_comes_up_and_one_tile_half_of_the_time() -> None:
    possible = {select_tiling(h, w, VISION) for h in range(64, 641, 4) for w in range(64, 641, 4)}
    assert set(picture_sizes(MIXED)) == possible
    got = Counter()
    for seed in range(250):  # empty scenes: nothing but their size is looked at
        height, width = make_scene(seed, dataclasses.replace(MIXED, empty=1.0, distractors=0)).pixels.shape[:2]
        got[select_tiling(height, width, VISION)] += 1
    assert set(got) == possible
    assert got[1, 1] / 250 == pytest.approx(0.5, abs=0.1)
    assert min(got.values()) >= 0.015 * 250
    for recipe in (SINGLE, FEW):
        sizes = [make_scene(seed, recipe).pixels.shape[:2] for seed in range(30)]
        assert {select_tiling(height, width, VISION) for height, width in sizes} == {(1, 1)}


def test_held_out_scenes_share_no_seed_and_no_digit_with_training() -> None:
    assert held_out(0) == HELD_OUT_SEED > TRAINING_SEEDS
    with pytest.raises(ValueError, match="for training"):
        make_scene(TRAINING_SEEDS, SINGLE)
    mine, theirs = (
        {scan.tobytes() for scans in digit_scans(part).values() for scan in scans} for part in (False, True)
    )
    assert not mine & theirs
    assert sum(map(len, digit_scans(False).values())) == TRAINING_DIGITS
    assert sum(map(len, digit_scans(True).values())) == 1797 - TRAINING_DIGITS
    assert all(len(scans) > 20 for scans in digit_scans(True).values())


def test_colours_stay_apart() -> None:
    rng = np.random.default_rng(0)
    shades = {colour: np.array([mix_paint(colour, rng).rgb for _ in range(200)]) for colour in PALETTE}
    assert tuple(sorted(shades)) == tuple(sorted(COLOURS))
    for one, two in itertools.combinations(COLOURS, 2):
        apart = np.linalg.norm(shades[one][:, None] - shades[two][None], axis=2).min()
        assert apart > 60, (one, two)


def test_a_single_thing_stands_out() -> None:
    assert contrast((255.0, 255.0, 255.0), np.full((9, 9, 3), 250, np.uint8)) < 20
    assert contrast((0.0, 0.0, 0.0), np.full((9, 9, 3), 255, np.uint8)) == pytest.approx(765, rel=0.01)
    for seed in range(40):
        picture = compose(seed, SINGLE)
        thing = picture.pixels[picture.owner == 0].mean(axis=0)
        x_min, y_min, x_max, y_max = (round(side) for side in picture.boxes[0])
        around = picture.pixels[max(0, y_min - 3) : y_max + 3, max(0, x_min - 3) : x_max + 3]
        beside = around[(picture.owner < 0)[max(0, y_min - 3) : y_max + 3, max(0, x_min - 3) : x_max + 3]]
        assert contrast(tuple(thing), beside[None, :].repeat(9, axis=0)) > 0.4 * CONTRAST
