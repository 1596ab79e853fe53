"""Text to be drawn: fonts that have its characters, and lines that fit.

Pillow brings one font, of ASCII and little more. Where a text has other characters, the fonts of the system are tried;
what none has is drawn as that font's box.
"""

from __future__ import annotations

import functools
import importlib.util
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont
_NAMES = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "wqy-microhei.ttc",
    "DroidSansFallbackFull.ttf",
)
_LONGEST = 4000  # characters: more fits nowhere, and measuring takes time
_NOBODYS = "\U0010ffff"  # a code point without a character: drawn as what a font draws for those it lacks


def clean(text: str) -> str:
    """One line of text that can be drawn: blanks and line breaks as single blanks, no control characters."""
    kept = (char for char in " ".join(text[:_LONGEST].split()) if unicodedata.category(char) not in ("Cc", "Cs", "Cn"))
    return "".join(kept)


def font_for(text: str, size: int) -> Font:
    """The first font that has every character of ``text``, else the one that lacks fewest. ``size`` in pixels."""
    fewest: tuple[int, Font] | None = None
    for number, font in enumerate(_fonts(size)):
        lacking = sum(not _has(number, char) for char in set(text))
        if not lacking:
            return font
        if fewest is None or lacking < fewest[0]:
            fewest = lacking, font
    assert fewest is not None
    return fewest[1]


def cut(text: str, size: int, width: float, *, keep: str = "start") -> str:
    """``text``, cleaned, or as much of its start (or end) as fits ``width`` pixels with an ellipsis."""
    text = clean(text)
    font = font_for(text, size)
    if font.getlength(text) <= width:
        return text
    most = _most(len(text), lambda n: font.getlength(_shortened(text, n, keep)) <= width)
    return _shortened(text, most, keep)


def wrap(text: str, size: int, width: float, lines: int) -> list[str]:
    """``text``, cleaned, in at most ``lines`` lines of ``width`` pixels; the last ends in an ellipsis where more would
    come. A word that is wider than a line is broken."""
    words = clean(text).split(" ")
    font = font_for(" ".join(words), size)
    made: list[str] = []
    while words and len(made) < lines - 1:
        count = _fitting(words, font, width)
        if count:
            made.append(" ".join(words[:count]))
            words = words[count:]
        else:
            word = words[0]
            head = _head(word, font, width)
            made.append(word[:head])
            words = [word[head:], *words[1:]] if word[head:] else words[1:]
    return [*made, cut(" ".join(words), size, width)] if words else made


def _fitting(words: list[str], font: Font, width: float) -> int:
    """How many of the first words go into one line."""
    for count in range(1, len(words) + 1):
        if font.getlength(" ".join(words[:count])) > width:
            return count - 1
    return len(words)


def _head(word: str, font: Font, width: float) -> int:
    """How many characters of a word that is too long go into a line; at least one."""
    return max(1, _most(len(word), lambda n: font.getlength(word[:n]) <= width))


def _most(highest: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``highest`` that fits, where all smaller ones do; 0 is not asked."""
    low = 0
    while low < highest:
        middle = (low + highest + 1) // 2
        if fits(middle):
            low = middle
        else:
            highest = middle - 1
    return low


def _shortened(text: str, length: int, keep: str) -> str:
    return f"…{text[len(text) - length :].lstrip()}" if keep == "end" else f"{text[:length].rstrip()}…"


@functools.cache
def _fonts(size: int) -> tuple[Font, ...]:
    bundled = ImageFont.load_default(size)
    assert isinstance(bundled, Font)
    return (bundled, *(ImageFont.truetype(place, size) for place in _places()))


@functools.cache
def _places() -> tuple[str, ...]:
    """The fonts that this machine has."""
    return tuple(place for place in _tried() if _opens(place))


def _tried() -> Iterator[str]:
    yield from _NAMES
    matplotlib = importlib.util.find_spec("matplotlib")  # of the extra "eval"; not imported for it
    if matplotlib and matplotlib.origin:
        yield str(Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf")


def _opens(place: str) -> bool:
    try:
        ImageFont.truetype(place, 12)
    except OSError:
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _has(number: int, char: str) -> bool:
    if char.isspace():
        return True
    font = _fonts(16)[number]
    drawn, lacking = font.getmask(char), font.getmask(_NOBODYS)
    return (drawn.size, bytes(drawn)) != (lacking.size, bytes(lacking))
