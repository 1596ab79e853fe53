"""Questions about a scene with the right answers, in words few and regular enough for a small model to learn.

What a name stands for is decided here alone; how a scene comes about is decided in ``scenes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from photon.core import SkillName
from training.scene import COLOURS, DIGITS, SHAPES, Object, Question, Scene

NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
LENGTHS = ("short", "normal", "long")
LISTED = {"short": 4, "normal": 8, "long": 12}
"""How many groups of like things (for ``long``: things) a caption names before it says how many more there are."""

SHARES: dict[SkillName, float] = {"detect": 0.45, "point": 0.20, "query": 0.28, "caption": 0.07}
ABSENT = 0.25
"""Share of names to detect and point at that stand for nothing in the picture."""
ABSENT_COUNT = 0.15
"""The same for names to count."""

COUNT = ("how many {} are there?", "count the {}.", "how many {} do you see?")
COLOUR = ("what colour is the {}?", "what color is the {}?", "which colour is the {}?")
YES = ("is there {}?", "is there {} in the picture?", "do you see {}?")
WHICH = ("which digit is there?", "what digit is it?", "which digit do you see?")


@dataclass(frozen=True, slots=True)
class Name:
    """What can be asked for: ``kind`` one of KINDS, ``shape``, ``digit`` or, for anything at all, empty; ``colour``
    one of COLOURS or, for any, empty."""

    kind: str = ""
    colour: str = ""

    @property
    def text(self) -> str:
        """As in a prompt: ``red circle``, ``digit 7``, ``anything red``."""
        return f"{self.colour} {self.kind}".strip() if self.kind else f"anything {self.colour}"

    @property
    def one(self) -> str:
        """With its article: ``an orange circle``."""
        return with_article(self.text) if self.kind else self.text

    @property
    def many(self) -> str:
        """``red crosses``, ``digit 7s``, ``red things``."""
        return f"{self.colour} {plural(self.kind or 'thing')}".strip()

    @property
    def group(self) -> str:
        if self.kind in SHAPES:
            return "shape"
        return "digit" if self.kind in DIGITS else "any"

    def fits(self, thing: Object) -> bool:
        if self.colour not in ("", thing.colour):
            return False
        if self.kind in ("", thing.kind):
            return True
        return (self.kind == "shape" and thing.kind in SHAPES) or (self.kind == "digit" and thing.kind in DIGITS)


PLAIN = tuple(Name(kind) for kind in SHAPES)
COLOURED = tuple(Name(kind, colour) for kind, colour in product(SHAPES, COLOURS))
DIGIT = tuple(Name(kind) for kind in DIGITS)
ANY = (Name("shape"), Name("digit"), *(Name("", colour) for colour in COLOURS))
NAMES = PLAIN + COLOURED + DIGIT + ANY
"""All that detect, point and the questions of number ask for."""


def plural(kind: str) -> str:
    return kind + ("es" if kind == "cross" else "s")


def with_article(words: str) -> str:
    return ("an " if words[0] in "aeiou" else "a ") + words


def _present(scene: Scene, rng: np.random.Generator) -> Name | None:
    """A name for one of the scene's things, None in an empty scene."""
    if not scene.objects:
        return None
    thing = scene.objects[rng.integers(len(scene.objects))]
    pick = rng.random()
    if pick < 0.14:
        return Name("", thing.colour)
    if thing.kind in DIGITS:
        return Name("digit") if pick < 0.28 else Name(thing.kind)
    if pick < 0.22:
        return Name("shape")
    return Name(thing.kind, thing.colour) if pick < 0.66 else Name(thing.kind)


def _absent(scene: Scene, rng: np.random.Generator) -> Name:
    """A name for nothing in the scene; mostly one that is nearly right: a kind there in a colour that it is not."""
    kinds = {thing.kind for thing in scene.objects}
    near = [name for name in COLOURED if name.kind in kinds]
    pick = rng.random()
    if near and pick < 0.55:
        names: Iterable[Name] = near
    elif pick < 0.75:
        names = DIGIT
    elif pick < 0.85:
        names = ANY
    elif pick < 0.93:
        names = PLAIN
    else:
        names = COLOURED
    colours = {(thing.kind, thing.colour) for thing in scene.objects}
    names = [name for name in names if (name.kind, name.colour) not in colours and not _any_fits(name, scene)]
    if not names:
        names = [name for name in COLOURED + DIGIT if not _any_fits(name, scene)]
    return names[rng.integers(len(names))]


def _any_fits(name: Name, scene: Scene) -> bool:
    return any(name.fits(thing) for thing in scene.objects)


def _name(scene: Scene, rng: np.random.Generator, absent: bool) -> Name:
    present = None if absent else _present(scene, rng)
    return present or _absent(scene, rng)


def _locate(skill: SkillName, scene: Scene, rng: np.random.Generator, luck: float) -> Question:
    name = _name(scene, rng, luck < ABSENT)
    found = [thing for thing in scene.objects if name.fits(thing)]
    group = name.group if found else "absent"
    if skill == "detect":
        return Question(skill, name.text, boxes=tuple(thing.box for thing in found), group=group)
    return Question(skill, name.text, points=tuple(thing.centre for thing in found), group=group)


def _ask(phrasings: tuple[str, ...], words: str, answer: str, group: str, rng: np.random.Generator) -> Question:
    prompt = phrasings[rng.integers(len(phrasings))].format(words)
    return Question("query", prompt, text=answer, group=group)


def _count(scene: Scene, rng: np.random.Generator, luck: float) -> Question:
    name = _name(scene, rng, luck < ABSENT_COUNT)
    number = sum(name.fits(thing) for thing in scene.objects)
    return _ask(COUNT, name.many, str(number), "count", rng)


def _colour(scene: Scene, rng: np.random.Generator) -> Question | None:
    """None where no kind has one colour only."""
    colours: dict[str, set[str]] = {}
    for thing in scene.objects:
        colours.setdefault(thing.kind, set()).add(thing.colour)
    sure = [(kind, *found) for kind, found in colours.items() if len(found) == 1]
    if not sure:
        return None
    kind, colour = sure[rng.integers(len(sure))]
    return _ask(COLOUR, kind, colour, "colour", rng)


def _yes(scene: Scene, rng: np.random.Generator, luck: float) -> Question:
    name = _name(scene, rng, luck < 0.5)
    return _ask(YES, name.one, "yes" if _any_fits(name, scene) else "no", "yes", rng)


def _which(scene: Scene, rng: np.random.Generator) -> Question | None:
    """None unless there is one digit."""
    digits = [thing.kind.removeprefix("digit ") for thing in scene.objects if thing.kind in DIGITS]
    return _ask(WHICH, "", digits[0], "which", rng) if len(digits) == 1 else None


def _query(scene: Scene, rng: np.random.Generator, sort: float, luck: float) -> Question:
    """Some sorts cannot be asked of every scene; counting can."""
    if 0.44 <= sort < 0.72:
        return _yes(scene, rng, luck)
    question = _which(scene, rng) if sort < 0.22 else None
    if question is None and sort < 0.44:
        question = _colour(scene, rng)
    return question or _count(scene, rng, luck)


def _listing(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _groups(scene: Scene, limit: int) -> str:
    """Like things together, in the order of the first of each: ``two red circles and a blue star``."""
    counts: dict[Name, int] = {}
    for thing in scene.objects:
        name = Name(thing.kind, thing.colour)
        counts[name] = counts.get(name, 0) + 1
    parts = [name.one if n == 1 else f"{NUMBERS[n]} {name.many}" for name, n in list(counts.items())[:limit]]
    more = sum(list(counts.values())[limit:])
    return _listing(parts + [f"{NUMBERS[more]} more"] * (more > 0))


def place_words(thing: Object) -> str:
    """Where a thing is, by thirds of the picture."""
    x, y = thing.centre
    across = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    down = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""
    if down:
        return f"at the {down} {across}".strip()
    return f"on the {across}" if across else "in the centre"


def caption(scene: Scene, length: str) -> str:
    """The one right text of that length, one of LENGTHS."""
    limit = LISTED[length]
    if not scene.objects:
        said = "nothing but a background"
    elif length == "long":
        things = scene.objects[:limit]
        parts = [f"{with_article(f'{thing.colour} {thing.kind}')} {place_words(thing)}" for thing in things]
        more = len(scene.objects) - len(things)
        said = _listing(parts + [f"{NUMBERS[more]} more"] * (more > 0))
    else:
        said = _groups(scene, limit)
    if length == "short":
        return said
    return f"The picture shows {said}."


def _caption(scene: Scene, rng: np.random.Generator) -> Question:
    length = LENGTHS[rng.integers(len(LENGTHS))]
    return Question("caption", None, text=caption(scene, length), length=length, group="caption")


def _draw(scene: Scene, rng: np.random.Generator, sort: float, luck: float) -> Question:
    for skill, share in SHARES.items():  # noqa: B007  the last one found is meant
        if sort < share:
            break
        sort -= share
    if skill == "query":
        return _query(scene, rng, sort / share, luck)
    return _caption(scene, rng) if skill == "caption" else _locate(skill, scene, rng, luck)


def questions(scene: Scene, rng: np.random.Generator, count: int) -> list[Question]:
    """``count`` questions in the mix of SHARES; one comes twice only where three draws of its sort found no new one."""
    asked: list[Question] = []
    for _ in range(count):
        # Drawn once for all tries: else the sorts with the fewest questions to ask would lose their share.
        sort, luck = rng.random(), rng.random()
        for _ in range(3):
            question = _draw(scene, rng, sort, luck)
            if question not in asked:
                break
        asked.append(question)
    return asked


def all_phrases() -> Iterator[str]:
    """Every prompt and every answer to a query, and captions of made-up scenes: what a tokenizer is trained on."""
    yield from (name.text for name in NAMES)
    yield from (phrase.format(name.many) for phrase, name in product(COUNT, NAMES))
    yield from (phrase.format(kind) for phrase, kind in product(COLOUR, SHAPES + DIGITS))
    yield from (phrase.format(name.one) for phrase, name in product(YES, NAMES))
    yield from WHICH
    yield from (str(number) for number in range(len(NUMBERS)))
    yield from (*COLOURS, "yes", "no")
    rng = np.random.default_rng(0)
    for scene in _made_up_scenes(rng, 300):
        yield from (caption(scene, length) for length in LENGTHS)


def _made_up_scenes(rng: np.random.Generator, count: int) -> Iterator[Scene]:
    """Scenes without a picture; each kind, colour and number is in some of them."""
    pixels = np.zeros((1, 1, 3), np.uint8)
    kinds = SHAPES + DIGITS
    for seed in range(count):
        variety = int(rng.integers(1, 6))
        pool = [(kinds[rng.integers(len(kinds))], COLOURS[rng.integers(len(COLOURS))]) for _ in range(variety)]
        centres = rng.random((seed % 21, 2))
        picks = [pool[i] for i in rng.integers(variety, size=len(centres))]
        yield Scene(
            seed,
            pixels,
            tuple(
                Object(kind, colour, (x, y, x, y))
                for (kind, colour), (x, y) in zip(picks, centres.tolist(), strict=True)
            ),
        )
