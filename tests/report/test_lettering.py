from __future__ import annotations

from itertools import pairwise

import pytest
from PIL import ImageFont

from photon.report import lettering
from photon.report.lettering import clean, cut, font_for, wrap

SIZE = 13


def length(text: str) -> float:
    return font_for(text, SIZE).getlength(text)


def test_cleaning() -> None:
    assert clean(" a\tb\r\n c\u2028d ") == "a b c d"
    assert clean("a\0b\x1b[31m\ud800c\uffff") == "ab[31mc"
    assert clean("日本 café") == "日本 café"


def test_cutting() -> None:
    text = "the quick brown fox jumps over the lazy dog"
    assert cut(text, SIZE, 1000) == text
    for width in (20, 60, 133, 200):
        start, end = cut(text, SIZE, width), cut(text, SIZE, width, keep="end")
        assert start[-1] == end[0] == "…"
        assert text.startswith(start[:-1])
        assert text.endswith(end[1:])
        for short in (start, end):
            assert length(short) <= width < length(short) + 20  # a word's gap and the widest letter
    assert cut(text, SIZE, 0) == "…"


def test_wrapping() -> None:
    text = "the quick brown fox jumps over the lazy dog and is gone"
    lines = wrap(text, SIZE, 120, 10)
    assert len(lines) > 2
    assert " ".join(lines) == text
    assert all(length(line) <= 120 for line in lines)
    for line, after in pairwise(lines):  # no line has room for the next word
        assert length(f"{line} {after.split()[0]}") > 120
    short = wrap(text, SIZE, 120, 2)
    assert short[0] == lines[0]
    assert short[1].endswith("…")
    assert text.startswith(f"{short[0]} {short[1][:-1]}")
    assert length(short[1]) <= 120
    assert wrap("fits", SIZE, 120, 1) == ["fits"]
    assert wrap(" \n ", SIZE, 120, 3) == [""]


def test_a_word_without_end() -> None:
    word = "".join(chr(97 + n % 26) for n in range(100_000))
    lines = wrap(word, SIZE, 100, 3)
    assert len(lines) == 3
    assert word.startswith("".join(lines)[:-1])
    assert lines[2][-1] == "…"
    assert all(80 < length(line) <= 100 for line in lines)
    assert wrap("abc", SIZE, 1, 2) == ["a", "…"]  # not even a letter fits


def test_a_font_that_has_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = font_for("plain", SIZE)
    assert bundled.getname() == ImageFont.load_default(SIZE).getname()
    places = lettering._places()
    other = next((place for place in places if "DejaVuSans" in place), None)
    if other is None:
        pytest.skip("no DejaVu Sans here")
    assert font_for("größer, жук", SIZE).getname() == ("DejaVu Sans", "Book")
    # Nowhere a font for it: the one that lacks fewest, and no error.
    assert font_for("\u4e00\U0001f4a9", SIZE).getlength("\u4e00") > 0
    lettering._fonts.cache_clear()
    monkeypatch.setattr(lettering, "_places", lambda: ())
    try:
        assert font_for("größer, жук", SIZE).getname() == bundled.getname()
        assert cut("жук" * 100, SIZE, 100).endswith("…")
    finally:
        lettering._fonts.cache_clear()
        lettering._has.cache_clear()
