"""The nouns that every floor shares: requests, results and what they hold.

Plain dataclasses, and named tuples for what every answer is made of: a frozen dataclass takes five times as long to
make. Imports nothing of ours and nothing heavy; does no work beyond checking its own values.
Coordinates are normalised to the frame that ``ImageInfo.frame`` names: x to the right, y down, origin at the
top-left corner, float32 values held in Python floats, not clamped to [0, 1].
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import PIL.Image

SkillName: TypeAlias = Literal["caption", "query", "detect", "point"]
FinishReason: TypeAlias = Literal["stop", "length", "max_objects", "repetition"]
SKILLS: tuple[SkillName, ...] = ("caption", "query", "detect", "point")
SpatialRef: TypeAlias = tuple[float, float] | tuple[float, float, float, float]


class Image:
    """A handle to one picture, shared by all requests that ask about it.

    Two requests share one encoding exactly when they hold the same ``Image`` object: identity decides, nothing is
    hashed. The picture is decoded when the engine gets to it, not here.
    """

    __slots__ = ("__weakref__", "source")

    def __init__(self, source: bytes | str | os.PathLike[str] | PIL.Image.Image) -> None:
        """``source``: an encoded file's bytes, a path to one, or a ``PIL.Image.Image``.

        Raises ``TypeError`` for anything else. Unreadable pictures are reported by the result, not here.
        """
        if isinstance(source, (bytearray, memoryview)):
            source = bytes(source)
        if not isinstance(source, (bytes, str, os.PathLike)) and not hasattr(source, "getexif"):
            raise TypeError(f"photon.Image takes bytes, a path or a PIL image, not {type(source).__name__}")
        self.source: Any = source

    def __repr__(self) -> str:
        what = f"{len(self.source)} bytes" if isinstance(self.source, bytes) else repr(self.source)
        return f"Image({what})"


class ImageInfo(NamedTuple):
    """What was found out while a picture was decoded.

    ``width`` and ``height`` in pixels are those of ``frame``: "oriented" (EXIF orientation applied) or "stored".
    ``sha256`` is the hex digest of the encoded bytes, None for a picture that came as pixels. ``icc_profile`` is the
    name of the colour profile in the file, which is not applied: "" if it has no name, None without a profile.
    ``odd_orientation``: the file has an EXIF orientation that is none of the eight, or broken EXIF; it counts as 1.
    """

    width: int
    height: int
    frame: Literal["oriented", "stored"] = "oriented"
    exif_orientation: int = 1
    mode: str = "RGB"
    n_frames: int = 1
    sha256: str | None = None
    icc_profile: str | None = None
    odd_orientation: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """How one request is answered. ``Request`` takes these by keyword.

    ``max_objects`` caps detect and point; ``max_tokens`` caps text (for a reasoned query, the reasoning and the
    answer each). ``temperature`` 0 takes the most likely token; above 0, tokens are drawn with noise from ``seed``, out
    of the ``top_k`` likeliest (0: all), and of those out of the ``top_p`` nucleus. ``length`` is the caption's.
    ``spatial_refs`` are (x, y) points and (x_min, y_min, x_max, y_max) boxes in [0, 1] that a query refers to.
    ``adapter`` names one of the adapters that the engine was loaded with; None asks the model as it is.
    """

    max_objects: int = 50
    max_tokens: int = 768
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    length: Literal["short", "normal", "long"] = "normal"
    spatial_refs: tuple[SpatialRef, ...] = ()
    reasoning: bool = False
    adapter: str | None = None

    def __post_init__(self) -> None:
        def check(good: bool, name: str, want: str) -> None:
            if not good:
                raise ValueError(f"setting {name} must be {want}, not {getattr(self, name)!r}")

        check(_is_int(self.max_objects) and self.max_objects >= 1, "max_objects", "an integer of at least 1")
        check(_is_int(self.max_tokens) and self.max_tokens >= 1, "max_tokens", "an integer of at least 1")
        check(_is_number(self.temperature) and 0 <= self.temperature < float("inf"), "temperature", "a number >= 0")
        check(_is_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "a number in (0, 1]")
        check(_is_int(self.top_k) and self.top_k >= 0, "top_k", "an integer of at least 0")
        check(_is_int(self.seed), "seed", "an integer")
        check(self.length in ("short", "normal", "long"), "length", "short, normal or long")
        check(isinstance(self.reasoning, bool), "reasoning", "true or false")
        named = isinstance(self.adapter, str) and self.adapter != ""
        check(self.adapter is None or named, "adapter", "a name or None")
        refs = tuple(tuple(float(v) for v in ref) for ref in self.spatial_refs)
        good = all(len(ref) in (2, 4) and all(0 <= v <= 1 for v in ref) for ref in refs)
        check(good, "spatial_refs", "points (x, y) or boxes (x_min, y_min, x_max, y_max) with values in [0, 1]")
        object.__setattr__(self, "spatial_refs", refs)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_SETTING_NAMES = tuple(f.name for f in fields(Settings))


@dataclass(frozen=True, slots=True, init=False)
class Request:
    """One question about one image (or about none): the engine's unit of work.

    ``id`` is the caller's own and comes back on the result. ``prompt`` is the question of a query, the object's name
    for detect and point, and unused by caption. Raises ``ValueError`` or ``TypeError`` on a wrong skill or setting.
    """

    id: Hashable
    image: Image | None
    skill: SkillName
    prompt: str
    settings: Settings

    def __init__(
        self, id: Hashable, image: Image | None, skill: SkillName, prompt: str | None = None, **settings: Any
    ) -> None:
        if skill not in SKILLS:
            raise ValueError(f"unknown skill {skill!r}: it is one of {', '.join(SKILLS)}")
        for name in settings:
            if name not in _SETTING_NAMES:
                near = difflib.get_close_matches(name, _SETTING_NAMES, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; settings are {', '.join(_SETTING_NAMES)}"
                raise TypeError(f"unknown setting {name!r}{hint}")
        if image is not None and not isinstance(image, Image):
            raise TypeError(f"image must be a photon.Image, not {type(image).__name__}")
        if image is None and skill != "query":
            raise ValueError(f"{skill} needs an image; only a query can go without one")
        if skill != "caption" and not prompt:
            raise ValueError(f"{skill} needs a prompt: {'a question' if skill == 'query' else 'the name of an object'}")
        try:
            checked = _settings(**settings)
        except TypeError:  # a value that is no key, which may be a wrong one
            checked = Settings(**settings)
        if checked.spatial_refs and (skill != "query" or image is None):
            raise ValueError("spatial_refs go with a query about an image")
        if checked.reasoning and skill != "query":
            raise ValueError("reasoning goes with a query")
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "image", image)
        object.__setattr__(self, "skill", skill)
        object.__setattr__(self, "prompt", prompt or "")
        object.__setattr__(self, "settings", checked)


@functools.lru_cache(1024, typed=True)
def _settings(**given: Any) -> Settings:
    """Checked once for a million requests that are asked alike."""
    return Settings(**given)


class Box(NamedTuple):
    """A detected object. ``score`` = ``score_exist`` x ``score_loc``, each in [0, 1], uncalibrated."""

    x_min: float
    y_min: float
    x_max: float
    y_max: float
    label: str
    score: float
    score_exist: float
    score_loc: float


class Point(NamedTuple):
    """A pointed-at object. Scores as in ``Box``."""

    x: float
    y: float
    label: str
    score: float
    score_exist: float
    score_loc: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer: a stable ``code`` such as IMAGE_TRUNCATED, and a message for people.

    ``sample``: the first MiB of a picture that could not be read.
    """

    code: str
    message: str
    sample: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Grounding:
    """A stretch of reasoning text, characters [start, end), and the points that it speaks of."""

    start: int
    end: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model wrote before it answered."""

    text: str
    grounding: tuple[Grounding, ...] = ()


class Timings(NamedTuple):
    """Seconds on ``time.monotonic``'s clock: taken in, image ready, first step launched, answered."""

    submitted: float = 0.0
    prepared: float = 0.0
    started: float = 0.0
    finished: float = 0.0


class Result(NamedTuple):
    """The answer to one request. Of ``text``, ``objects`` and ``points`` the skill's own is set; all are None on error.

    ``token_ids`` are the ids that the model emitted, end token left out; ``n_tokens`` counts them.
    """

    id: Hashable
    text: str | None = None
    objects: Sequence[Box] | None = None
    points: Sequence[Point] | None = None
    finish_reason: FinishReason | None = None
    token_ids: Sequence[int] = ()
    n_tokens: int = 0
    reasoning: Reasoning | None = None
    image: ImageInfo | None = None
    error: Failure | None = None
    timings: Timings = Timings()
