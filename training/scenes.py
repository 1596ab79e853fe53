"""Scenes from seeds: which things, where, on what, so that every one of them can be seen and told from the rest.

The same seed and recipe give the same bytes in any process and in any order. Seeds below ``TRAINING_SEEDS`` are for
training, those from ``HELD_OUT_SEED`` on for evaluation, with handwritten digits of their own.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from photon.models.config import VisionConfig
from photon.models.tiling import select_tiling
from training.backgrounds import CONTRAST, add_distractors, contrast, make_background
from training.composition import Composition, Tiling
from training.draw import SAMPLES, Glyph, Paint, Stamp, make_glyph, mix_paint, place
from training.scene import COLOURS, DIGITS, SHAPES, Scene

TRAINING_SEEDS = 1_000_000_000
HELD_OUT_SEED = 2_000_000_000

VISION = VisionConfig(crop_size=112, overlap_margin=1, max_crops=6)
"""How the model in the box cuts its pictures."""
SEEN = 8.0
"""Least side of a thing, in pixels of the crop in which the model sees it largest."""
SEEN_DIGIT = 14.0
"""The same for the longer side of a digit."""
SEEN_IN_CROWD = 14.0
"""Least side in a crowd: a patch of the vision tower. Smaller things that touch it could not tell from each other."""
CROWD = 8
"""Things in a crowd at least; 20 at most."""
TRIES = 6
"""For one thing: how often another one is made, and for each how many places are tried."""
ATTEMPTS = 50
"""For one scene: how often it is begun again where too few things found a place."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What scenes are like. Sides in pixels; ``sizes`` are the least and the greatest side of a thing as fractions of
    the picture's shorter side, the least one for one tile first, then for many tiles; shares and chances in 0..1."""

    name: str
    objects: tuple[int, int]
    tilings: tuple[tuple[Tiling, float], ...] = (((1, 1), 1.0),)
    sides: tuple[int, int] = (80, 112)
    max_aspect: float = 3.1
    sizes: tuple[float, float, float] = (0.08, 0.05, 0.60)
    digits: float = 0.35
    distractors: int = 5
    overlap: float = 0.3
    outlines: float = 0.3
    empty: float = 0.0
    crowds: float = 0.0
    objects_in_one_tile: int = 10
    """At most, crowds aside: more could not be told apart at the model's sight of one tile."""


SINGLE = Recipe("single", objects=(1, 1), sizes=(0.12, 0.12, 0.60), distractors=3)
FEW = Recipe("few", objects=(1, 6), sides=(80, 144))
MIXED = Recipe(
    "mixed",
    objects=(1, 20),
    tilings=(
        ((1, 1), 0.50),
        ((2, 2), 0.14),
        ((1, 3), 0.07),
        ((3, 1), 0.07),
        ((2, 3), 0.07),
        ((3, 2), 0.07),
        ((1, 4), 0.04),
        ((4, 1), 0.04),
    ),
    sides=(80, 500),
    empty=0.05,
    crowds=0.05,
)
RECIPES = {recipe.name: recipe for recipe in (SINGLE, FEW, MIXED)}


def held_out(n: int) -> int:
    """The seed of the ``n``-th scene for evaluation."""
    return HELD_OUT_SEED + n


@functools.cache
def picture_sizes(recipe: Recipe) -> dict[Tiling, npt.NDArray[np.int64]]:
    """Heights and widths [n, 2] in pixels that the recipe allows, by the tiling that they get."""
    low, high = recipe.sides
    sizes: dict[Tiling, list[tuple[int, int]]] = {tiling: [] for tiling, _ in recipe.tilings}
    for height in range(low, high + 1, 2):
        for width in range(low, high + 1, 2):
            if max(height, width) <= recipe.max_aspect * min(height, width):
                sizes.get(select_tiling(height, width, VISION), []).append((height, width))
    return {tiling: np.array(found) for tiling, found in sizes.items()}


@functools.cache
def _size_chances(recipe: Recipe, tiling: Tiling) -> npt.NDArray[np.float64]:
    """Running sums: small pictures more often, which are the faster and the squarer ones."""
    weights = 1.0 / picture_sizes(recipe)[tiling].prod(axis=1)
    running: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return running


def _pick_size(recipe: Recipe, rng: np.random.Generator) -> tuple[int, int, Tiling]:
    pick = rng.random()
    for tiling, share in recipe.tilings:  # noqa: B007  the last one found is meant
        pick -= share
        if pick < 0:
            break
    at = min(int(np.searchsorted(_size_chances(recipe, tiling), rng.random())), len(picture_sizes(recipe)[tiling]) - 1)
    height, width = picture_sizes(recipe)[tiling][at]
    return int(height), int(width), tiling


def sight(picture: Composition) -> float:
    """Pixels of a crop for one of the picture, along the side that is shrunk more."""
    (height, width), (rows, cols) = picture.size, picture.tiling
    return min((rows * VISION.window + VISION.margin) / height, (cols * VISION.window + VISION.margin) / width)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Kinds and colours that one scene draws from: few of them in half of the scenes, so that things repeat."""

    kinds: tuple[str, ...]
    colours: tuple[str, ...]
    digits: float

    @classmethod
    def of(cls, recipe: Recipe, rng: np.random.Generator) -> _Choice:
        shapes: tuple[str, ...] = SHAPES
        digits: tuple[str, ...] = DIGITS
        colours: tuple[str, ...] = COLOURS
        if rng.random() < 0.5:
            shapes = _some(SHAPES, int(rng.integers(1, 4)), rng)
            digits = _some(DIGITS, int(rng.integers(1, 4)), rng)
            colours = _some(COLOURS, int(rng.integers(1, 5)), rng)
        return cls((*shapes, *digits), colours, recipe.digits)

    def pick(self, rng: np.random.Generator) -> tuple[str, str]:
        digit = rng.random() < self.digits
        kinds = [kind for kind in self.kinds if (kind in DIGITS) == digit]
        return kinds[rng.integers(len(kinds))], self.colours[rng.integers(len(self.colours))]


def _some(names: tuple[str, ...], count: int, rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[i] for i in rng.permutation(len(names))[:count])


def _least(kind: str, picture: Composition, recipe: Recipe) -> float:
    """Pixels of a thing's shorter side at least."""
    fraction = recipe.sizes[0] if picture.tiling == (1, 1) else recipe.sizes[1]
    seen = 0.6 * SEEN_DIGIT if kind in DIGITS else SEEN
    return max(fraction * min(picture.size), seen / sight(picture))


def _legible(glyph: Glyph, picture: Composition) -> bool:
    return glyph.kind in SHAPES or max(glyph.size) * sight(picture) >= SEEN_DIGIT * SAMPLES


def _paint_for(
    colours: tuple[str, ...], behind: npt.NDArray[np.uint8], rng: np.random.Generator
) -> tuple[str, Paint] | None:
    """The first of the colours that stands out, in a shade that does; None where none does."""
    for colour in colours:
        paint = mix_paint(colour, rng)
        if contrast(paint.rgb, behind) >= CONTRAST:
            return colour, paint
    return None


def _around(picture: Composition, stamp: Stamp) -> npt.NDArray[np.uint8]:
    """What a thing will stand on, and a little beside it."""
    rows, cols = stamp.window
    return picture.pixels[max(0, rows.start - 3) : rows.stop + 3, max(0, cols.start - 3) : cols.stop + 3]


def _scatter(picture: Composition, recipe: Recipe, held_out: bool, rng: np.random.Generator) -> None:
    """Things at random places, later ones in front; a thing for which no place is found is left out."""
    low, high = recipe.objects
    if picture.tiling == (1, 1):
        high = min(high, recipe.objects_in_one_tile)
    count = low + int((high - low + 1) * rng.random() ** (1.0 if high < 10 else 1.6))
    choice, overlap = _Choice.of(recipe, rng), rng.random() < recipe.overlap
    height, width = picture.size
    longest = recipe.sizes[2] * min(picture.size)
    for _ in range(count):
        for _ in range(TRIES):
            kind, wanted = choice.pick(rng)
            least = _least(kind, picture, recipe)
            # Many things are smaller things; the spread is even on a log scale.
            most = max(1.3 * least, min(longest, 0.85 * math.sqrt(height * width / (count + 2))))
            shorter = least * (most / least) ** rng.random()
            glyph = make_glyph(kind, shorter, longest, rng, outline=rng.random() < recipe.outlines, held_out=held_out)
            stamp = _free_place(picture, glyph, overlap, rng)
            if stamp is None or not _legible(glyph, picture):
                continue
            # Two things of one colour that touch would look like one.
            taken = {picture.things[i][1] for i in picture.touched(stamp.box)}
            colours = (wanted, *_some(choice.colours, 2, rng), *_some(COLOURS, 2, rng))
            left = tuple(colour for colour in colours if colour not in taken)
            found = _paint_for(left, _around(picture, stamp), rng)
            if found:
                picture.add(kind, found[0], stamp, found[1], rng)
                break


def _free_place(picture: Composition, glyph: Glyph, overlap: bool, rng: np.random.Generator) -> Stamp | None:
    """A random place where it hides little, or touches nothing without ``overlap``; None where a few tries fail."""
    (height, width), (wide, tall) = picture.size, glyph.size
    if width * SAMPLES <= wide or height * SAMPLES <= tall:
        return None
    for _ in range(TRIES):
        left, top = int(rng.integers(width * SAMPLES - wide)), int(rng.integers(height * SAMPLES - tall))
        box = (left / SAMPLES, top / SAMPLES, (left + wide) / SAMPLES, (top + tall) / SAMPLES)
        if picture.touched(box) and not overlap:
            continue
        stamp = place(glyph, left, top)
        if picture.hides_little(stamp):
            return stamp
    return None


def _crowd(picture: Composition, recipe: Recipe, held_out: bool, rng: np.random.Generator) -> None:
    """Up to twenty small things of one kind in rows and columns that touch, in half of the crowds out of line."""
    choice, (height, width) = _Choice.of(recipe, rng), picture.size
    kind, colour = choice.pick(rng)
    in_line = rng.random() < 0.5
    size = max(_least(kind, picture, recipe), SEEN_IN_CROWD / sight(picture)) * rng.uniform(1.05, 1.4)
    for _ in range(TRIES):
        glyph = make_glyph(kind, size, 0.5 * min(picture.size), rng, outline=True, held_out=held_out)
        if _legible(glyph, picture):
            break
        size *= 1.15
    else:
        return
    wide, tall = glyph.size
    shift = 0 if in_line else int(0.2 * min(wide, tall))
    room = (width * SAMPLES - shift) // wide, (height * SAMPLES - shift) // tall
    count = min(int(rng.integers(CROWD, 21)), room[0] * room[1])
    columns = min(room[0], max(-(-count // room[1]), round(math.sqrt(count * width / height * tall / wide))))
    rows = -(-count // columns)
    left = int(rng.integers(max(1, width * SAMPLES - shift - columns * wide)))
    top = int(rng.integers(max(1, height * SAMPLES - shift - rows * tall)))
    rows_of = slice(top // SAMPLES, (top + shift + rows * tall) // SAMPLES)
    cols_of = slice(left // SAMPLES, (left + shift + columns * wide) // SAMPLES)
    behind = picture.pixels[rows_of, cols_of].copy()  # without those of the crowd that are drawn already
    firsts = (_paint_for((colour, *_some(COLOURS, 3, rng)), behind, rng) for _ in range(int(rng.integers(1, 3))))
    colours = [found[0] for found in firsts if found]
    for i in range(count if colours else 0):
        across, down = (int(rng.integers(shift + 1)) for _ in range(2))
        stamp = place(glyph, left + i % columns * wide + across, top + i // columns * tall + down)
        found = _paint_for((colours[rng.integers(len(colours))],) * 4, behind, rng)
        if found and picture.hides_little(stamp):
            picture.add(kind, found[0], stamp, found[1], rng)


def compose(seed: int, recipe: Recipe) -> Composition:
    """A scene with what its tests want to know: which pixels show which thing."""
    held_out = seed >= HELD_OUT_SEED
    if not held_out and not 0 <= seed < TRAINING_SEEDS:
        raise ValueError(f"seed {seed}: below {TRAINING_SEEDS} for training, from {HELD_OUT_SEED} on for evaluation")
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    height, width, tiling = _pick_size(recipe, rng)
    sort = rng.random()
    for _ in range(ATTEMPTS):
        background = make_background(height, width, rng)
        add_distractors(background, int(rng.integers(recipe.distractors + 1)), rng)
        picture = Composition(np.array(background), tiling)
        if sort < recipe.empty:
            return picture
        crowd = sort < recipe.empty + recipe.crowds
        fill, least = (_crowd, CROWD) if crowd else (_scatter, recipe.objects[0])
        fill(picture, recipe, held_out, rng)
        if len(picture.things) >= least:
            return picture
    raise ValueError(f"recipe {recipe.name!r}: {least} things have no place in a picture of {width} x {height} pixels")


def make_scene(seed: int, recipe: Recipe) -> Scene:
    """The scene of that seed: for training below ``TRAINING_SEEDS``, for evaluation from ``HELD_OUT_SEED`` on."""
    return compose(seed, recipe).scene(seed)
