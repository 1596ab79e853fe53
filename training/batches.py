"""Scenes and their questions as tensors: what one step of training sees, made by a process beside the training.

The questions about one picture stand packed in one row, each a segment that begins where the picture's prefix ends.
Prompts come from the skills themselves, and what follows them is laid out as their grammars would demand it.
"""

from __future__ import annotations

import functools
import queue
import signal
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch

from photon.core import Image, Request
from photon.models.config import VisionConfig
from photon.models.moondream import COORDINATE, SIZE, TOKEN
from photon.models.tiling import crop_count, cut_crops, select_tiling
from photon.skills.registry import script_for
from photon.skills.skill import SkillContext
from training.gates import Gate
from training.questions import COLOUR, COUNT, NAMES, WHICH, YES, Name, questions
from training.scene import COLOURS, DIGITS, KINDS, SHAPES, Object, Question, Scene
from training.scenes import compose
from training.shape import BINS
from training.vocabulary import token_section, words

Array = npt.NDArray[Any]
NOTHING = len(KINDS)
"""The kind of a patch where there is no thing."""
IGNORED = -100
NOWHERE = (-1.0, -1.0, -1.0, -1.0)
FINE = 7
"""Parts of a patch along one side in the masks."""
_HANDLE = Image(b"")


@dataclass(slots=True)
class Batch:
    """All arrays lead with the picture but ``pixels``, which are the crops of one picture after the other.

    Packed rows of T positions, of the first pictures only: ``ids``, ``kinds``, ``positions``, ``segments`` (-1 for
    padding) [B, T], ``values`` [B, T, 2]. Targets there: ``tokens`` (or IGNORED), ``coordinates`` (-1 for none)
    [B, T], ``sizes`` [B, T, 2], ``pointers`` [B, T, 1 + patches]: where among BOS and patches to look, zeros for no
    matter; ``places`` [B, T, 4], centre and sides of the thing under way.
    Of patches [B, 2, patches]: ``patch_kinds``, ``patch_colours``, ``patch_places`` [..., 4] (offset of the centre in
    patches, log2 of the sides); first of things whose centre is in the patch, then of things that cover it.
    ``patch_centres`` [B, patches, 2]: where in the picture the centre is. ``masks`` [B, patches, FINE x FINE]: how
    much of each part of a patch shows a thing, in 0..1.
    """

    pixels: Array
    tilings: list[tuple[int, int]]
    ids: Array
    kinds: Array
    values: Array
    positions: Array
    segments: Array
    tokens: Array
    coordinates: Array
    sizes: Array
    pointers: Array
    places: Array
    patch_kinds: Array
    patch_colours: Array
    patch_places: Array
    patch_centres: Array
    masks: Array

    def tensors(self, device: torch.device) -> dict[str, torch.Tensor]:
        names = [f.name for f in fields(self) if f.name != "tilings"]
        return {name: torch.from_numpy(getattr(self, name)).to(device) for name in names}


@functools.cache
def context() -> SkillContext:
    from photon.models.config import TokenConfig

    return SkillContext(TokenConfig(**token_section()), words(), [], [], False)


def prompt_ids(question: Question) -> list[int]:
    settings = {"length": question.length} if question.skill == "caption" else {}
    request = Request(0, _HANDLE, question.skill, question.prompt, **settings)
    return script_for(request, context()).prompt.ids


@functools.cache
def _asked_for() -> dict[str, Name]:
    """What a question of number or of yes and no is about, by its text."""
    found = {phrase.format(name.many): name for phrase in COUNT for name in NAMES}
    found |= {phrase.format(name.one): name for phrase in YES for name in NAMES}
    return found | {phrase.format(kind): Name(kind) for phrase in COLOUR for kind in SHAPES + DIGITS}


def subjects(question: Question, scene: Scene) -> list[Object] | None:
    """The things that the question is about; None where that is no help (captions)."""
    if question.skill == "caption" or question.prompt is None:
        return None
    if question.prompt in WHICH:
        name = Name("digit")
    elif question.skill == "query":
        name = _asked_for()[question.prompt]
    else:
        name = next(name for name in NAMES if name.text == question.prompt)
    return [thing for thing in scene.objects if name.fits(thing)]


@dataclass(slots=True)
class Segment:
    """One question, position by position; see ``Batch``."""

    ids: list[int]
    kinds: list[int]
    values: list[tuple[float, float]]
    tokens: list[int]
    coordinates: list[float]
    sizes: list[tuple[float, float]]
    pointers: list[list[int]]
    places: list[tuple[float, ...]]

    @classmethod
    def opened(cls, ids: list[int]) -> Segment:
        n = len(ids)
        return cls(
            list(ids),
            [TOKEN] * n,
            [(0.0, 0.0)] * n,
            [IGNORED] * n,
            [-1.0] * n,
            [(-1.0, -1.0)] * n,
            [[]] * n,
            [NOWHERE] * n,
        )

    def feed(self, id_: int, kind: int = TOKEN, value: tuple[float, float] = (0.0, 0.0)) -> None:
        self.ids.append(id_)
        self.kinds.append(kind)
        self.values.append(value)
        self.tokens.append(IGNORED)
        self.coordinates.append(-1.0)
        self.sizes.append((-1.0, -1.0))
        self.pointers.append([])
        self.places.append(NOWHERE)


def patch_of(centre: tuple[float, float], grid: int) -> int:
    x, y = (min(grid - 1, max(0, int(value * grid))) for value in centre)
    return y * grid + x


def make_segment(question: Question, scene: Scene, grid: int, rng: np.random.Generator, jitter: float = 0.0) -> Segment:
    """``jitter``: chance that a value fed back is a bin or two beside the right one."""
    segment = Segment.opened(prompt_ids(question))
    about = subjects(question, scene)
    if question.skill in ("query", "caption"):
        ids = words().encode(question.text)
        if about is not None:
            segment.pointers[-1] = [1 + patch_of(thing.centre, grid) for thing in about] or [0]
        for id_ in ids:
            segment.tokens[-1] = id_
            segment.feed(id_)
        segment.tokens[-1] = context().tokens.eos_id
        return segment
    assert about is not None
    for thing in about:
        _add_place(segment, thing, question.skill == "detect", grid, rng, jitter)
    segment.tokens[-1] = context().tokens.eos_id
    segment.pointers[-1] = [0]
    return segment


def _add_place(
    segment: Segment, thing: Object, sized: bool, grid: int, rng: np.random.Generator, jitter: float
) -> None:
    tokens = context().tokens
    at = [1 + patch_of(thing.centre, grid)]
    sides = thing.box[2] - thing.box[0], thing.box[3] - thing.box[1]
    place = (*thing.centre, *sides)
    segment.tokens[-1] = tokens.coord_id
    for axis in (0, 1):
        value = thing.centre[axis]
        segment.coordinates[-1], segment.pointers[-1], segment.places[-1] = value, at, place
        segment.feed(tokens.coord_id, COORDINATE, (fed_coordinate(value, _shake(rng, jitter)), 0.0))
    if sized:
        segment.sizes[-1], segment.pointers[-1], segment.places[-1] = sides, at, place
        segment.feed(
            tokens.size_id, SIZE, (fed_size(sides[0], _shake(rng, jitter)), fed_size(sides[1], _shake(rng, jitter)))
        )


def _shake(rng: np.random.Generator, chance: float) -> int:
    return int(rng.integers(-2, 3)) if rng.random() < chance else 0


def coordinate_bin(value: float) -> float:
    """Where on the scale of bins a coordinate lies, not rounded."""
    return min(BINS - 1.0, max(0.0, value * BINS))


def size_bin(value: float) -> float:
    return (float(np.log2(max(value, 1 / 1024))) + 10) / 10 * (BINS - 1)


def fed_coordinate(value: float, shake: int = 0) -> float:
    return min(BINS - 1, max(0, round(coordinate_bin(value)) + shake)) / BINS


def fed_size(value: float, shake: int = 0) -> float:
    return float(2.0 ** (min(BINS - 1, max(0, round(size_bin(value)) + shake)) / (BINS - 1) * 10 - 10))


def patch_targets(scene: Scene, grid: int) -> tuple[Array, Array, Array, Array]:
    """Kinds, colours [2, patches], places [2, patches, 4] and centres [patches, 2]; see ``Batch``.

    The smallest thing wins a patch.
    """
    kinds = np.full((2, grid * grid), NOTHING, np.int64)
    colours = np.full((2, grid * grid), IGNORED, np.int64)
    places = np.zeros((2, grid * grid, 4), np.float32)
    centres = np.zeros((grid * grid, 2), np.float32)
    middles = (np.arange(grid) + 0.5) / grid
    xs, ys = np.tile(middles, grid), np.repeat(middles, grid)

    def area(thing: Object) -> float:
        return (thing.box[2] - thing.box[0]) * (thing.box[3] - thing.box[1])

    for thing in sorted(scene.objects, key=area, reverse=True):
        left, top, right, bottom = thing.box
        covered = (xs >= left) & (xs <= right) & (ys >= top) & (ys <= bottom)
        home = np.arange(grid * grid) == patch_of(thing.centre, grid)
        logs = np.log2([max(right - left, 1 / 1024), max(bottom - top, 1 / 1024)])
        for level, at in ((0, home), (1, covered | home)):
            kinds[level, at] = KINDS.index(thing.kind)
            colours[level, at] = COLOURS.index(thing.colour)
            places[level, at, 0] = (thing.centre[0] - xs[at]) * grid
            places[level, at, 1] = (thing.centre[1] - ys[at]) * grid
            places[level, at, 2:] = logs
        centres[home] = thing.centre
    return kinds, colours, places, centres


def mask_targets(shown: Array, grid: int) -> Array:
    side = grid * FINE
    small = PIL.Image.fromarray(shown.astype(np.uint8) * 255).resize((side, side), PIL.Image.Resampling.BOX)
    parts = np.asarray(small, np.float32).reshape(grid, FINE, grid, FINE) / 255
    return parts.transpose(0, 2, 1, 3).reshape(grid * grid, FINE * FINE)


def chosen_questions(scene: Scene, gate: Gate, rng: np.random.Generator) -> Iterator[Question]:
    """Questions in an order in which rows may be filled; those with words for an answer only at the gate's share."""
    for question in questions(scene, rng, gate.questions):
        if question.skill in ("detect", "point") or rng.random() < gate.words:
            yield question


def make_batch(seeds: range, gate: Gate, vision: VisionConfig) -> Batch:
    grid, prefix = vision.grid, 1 + vision.grid**2
    crops: list[Array] = []
    tilings: list[tuple[int, int]] = []
    rows: list[list[Segment]] = []
    patches: list[tuple[Array, Array, Array, Array]] = []
    masks: list[Array] = []
    for place, seed in enumerate(seeds):
        rng = np.random.default_rng((seed, 1))
        picture = compose(seed, gate.recipe(rng))
        scene = picture.scene(seed)
        masks.append(mask_targets(picture.owner >= 0, grid))
        pixels, tiling = crops_of(scene.pixels, vision)
        crops.append(pixels)
        tilings.append(tiling)
        patches.append(patch_targets(scene, grid))
        if place < max(1, gate.asked):
            rows.append(_row(scene, gate, grid, rng))
    return Batch(
        np.concatenate(crops),
        tilings,
        **_pack(rows, prefix),
        patch_kinds=np.stack([p[0] for p in patches]),
        patch_colours=np.stack([p[1] for p in patches]),
        patch_places=np.stack([p[2] for p in patches]),
        patch_centres=np.stack([p[3] for p in patches]),
        masks=np.stack(masks),
    )


def _row(scene: Scene, gate: Gate, grid: int, rng: np.random.Generator) -> list[Segment]:
    row: list[Segment] = []
    used = 0
    for question in chosen_questions(scene, gate, rng) if gate.questions else ():
        segment = make_segment(question, scene, grid, rng, gate.jitter)
        if used + len(segment.ids) <= gate.tokens:
            row.append(segment)
            used += len(segment.ids)
    return row


def crops_of(pixels: Array, vision: VisionConfig) -> tuple[Array, tuple[int, int]]:
    tiling = select_tiling(pixels.shape[0], pixels.shape[1], vision)
    out = np.empty((crop_count(tiling), vision.crop_size, vision.crop_size, 3), np.uint8)
    cut_crops(PIL.Image.fromarray(pixels), tiling, vision, out)
    return out, tiling


def _pack(rows: list[list[Segment]], prefix: int) -> dict[str, Array]:
    b, t = len(rows), max(1, *(sum(len(s.ids) for s in row) for row in rows))
    out: dict[str, Array] = {
        "ids": np.zeros((b, t), np.int64),
        "kinds": np.zeros((b, t), np.int64),
        "values": np.zeros((b, t, 2), np.float32),
        "positions": np.full((b, t), prefix, np.int64),
        "segments": np.full((b, t), -1, np.int64),
        "tokens": np.full((b, t), IGNORED, np.int64),
        "coordinates": np.full((b, t), -1, np.float32),
        "sizes": np.full((b, t, 2), -1, np.float32),
        "pointers": np.zeros((b, t, prefix), np.float32),
        "places": np.full((b, t, 4), -1, np.float32),
    }
    for i, row in enumerate(rows):
        at = 0
        for number, segment in enumerate(row):
            here = slice(at, at + len(segment.ids))
            for name in ("ids", "kinds", "values", "tokens", "coordinates", "sizes", "places"):
                out[name][i, here] = getattr(segment, name)
            out["positions"][i, here] = prefix + np.arange(len(segment.ids))
            out["segments"][i, here] = number
            for offset, places in enumerate(segment.pointers):
                for place in places:
                    out["pointers"][i, at + offset, place] += 1 / len(places)
            at = here.stop
    return out


def _work(batches: Any, stop: Any, first: int, gate: Gate, vision: VisionConfig, size: int, threads: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(threads)
    seed = first
    while not stop.is_set():
        batch = make_batch(range(seed, seed + size), gate, vision)
        seed += size
        while not stop.is_set():
            try:
                batches.put(batch, timeout=1)
                break
            except queue.Full:
                continue


class Batches:
    """Batches of a gate from one worker process, a few ahead. A context manager and an endless iterator."""

    def __init__(self, first_seed: int, gate: Gate, vision: VisionConfig, size: int, ahead: int = 6) -> None:
        spawn = torch.multiprocessing.get_context("spawn")
        self._batches: Any = spawn.Queue(ahead)
        self._stop = spawn.Event()
        arguments = (self._batches, self._stop, first_seed, gate, vision, size, 1)
        self._worker = spawn.Process(target=_work, args=arguments, daemon=True)

    def __enter__(self) -> Batches:
        self._worker.start()
        return self

    def __iter__(self) -> Iterator[Batch]:
        while True:
            try:
                yield self._batches.get(timeout=10)
            except queue.Empty:
                if not self._worker.is_alive():
                    raise RuntimeError(f"the worker ended with exit code {self._worker.exitcode}") from None

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        while self._worker.is_alive():
            try:
                self._batches.get(timeout=0.1)
            except queue.Empty:
                continue
        self._worker.join()
        self._batches.close()
