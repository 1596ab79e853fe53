from __future__ import annotations

import math
from pathlib import Path

import pytest

from photon.errors import UsageError
from photon.manifest.document import Document, plain_scalar
from photon.manifest.problems import ManifestError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("2025-06-21", "2025-06-21"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("012", 12),
        ("0o17", 15),
        ("0x1f", 31),
        ("-7", -7),
        ("1.10", 1.1),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("nul", "nul"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    read = plain_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_lines_and_written_texts() -> None:
    made = Document.parse("a: 1\nb:\n  - c: 012\n    d: '012'\n  - [x,\n     y]\n")
    assert made.data == {"a": 1, "b": [{"c": 12, "d": "012"}, ["x", "y"]]}
    assert made.line(("b", 0, "d")) == 4
    assert made.line(("b", 1, 1)) == 6
    assert made.line(("b", 0, "nothing", 3)) == 3, "the nearest key around"
    assert made.written[("b", 0, "c")] == "012"
    assert ("b", 0, "d") not in made.written


def test_explicit_text_tag_and_anchors() -> None:
    assert Document.parse("a: !!str 012\nb: &x [1]\nc: *x\n").data == {"a": "012", "b": [1], "c": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n\tb: 1\n", "m:2: a tab where YAML wants spaces; indent with spaces"),
        ("a: is it: so\n", 'm:1: a second \': \' on one line, or a wrong indent; put text that holds ": " in quotes'),
        ("a: 1\n---\nb: 1\n", "m:2: a second document begins here; keep one manifest a file, without a second ---"),
        ("a: 'x\n", "m:2: found unexpected end of stream; close the quote, or double a backslash that is meant"),
        ("a: *b\n", "m:1: found undefined alias 'b'; put text that begins with * in quotes"),
        ("a: @b\n", "m:1: found character '@' that cannot start any token; "
                    "put text that begins with this character in quotes"),
        ("a: {b} c\n", "m:1: expected <block end>, but found '<scalar>'; "
                       'check indentation and brackets; text that begins with { or [ needs quotes: "{column} ..."'),
    ],
)  # fmt: skip
def test_syntax_errors_name_line_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Document.parse(text, "m")
    assert str(caught.value) == message


def test_lesser_problems_are_collected() -> None:
    made = Document.parse("a: 1\nb: 2\na: 3\n? [x]\n: 1\nc: !mine 3\nd: &d [*d]\n", "m")
    assert made.data == {"a": 1, "b": 2, "c": 3, "d": [None]}
    assert [(p.line, p.key, p.message) for p in made.problems] == [
        (3, "a", "is given twice, first on line 1; keep one of them"),
        (4, "", "a key must be one word, not a list or mapping"),
        (6, "c", "tag !mine is not known; leave it out"),
        (7, "d.0", "an alias that holds itself; write the value out"),
    ]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the manifest .*nowhere\.yaml: No such file or directory; give"):
        Document.read(tmp_path / "nowhere.yaml")
    (tmp_path / "m.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ManifestError, match=r"m\.yaml:1: is not UTF-8 text; save it as UTF-8"):
        Document.read(tmp_path / "m.yaml")
    (tmp_path / "m.yaml").write_bytes(b"a: \x00\n")
    with pytest.raises(ManifestError, match="is not YAML"):
        Document.read(tmp_path / "m.yaml")


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    made = Document.read(tmp_path / "m.yaml")
    assert made.data == {"a": 1, "b": 2}
    assert made.line(("b",)) == 2


@pytest.mark.parametrize("number", ["1" * 5000, "-" + "1" * 5000, "0x" + "f" * 5000])
def test_numbers_beyond_measure(number: str) -> None:
    with pytest.raises(ManifestError, match=r"^m:2: b: a number of \d+ digits; write a smaller one, or put"):
        Document.parse(f"a: 1\nb: {number}\n", "m")
    assert Document.parse(f"b: {number}x\n").data == {"b": f"{number}x"}


@pytest.mark.parametrize("depth", [60, pytest.param(20_000, marks=pytest.mark.slow)])
def test_nesting_beyond_measure(depth: int) -> None:
    with pytest.raises(ManifestError, match=r"^m:1: nests deeper than 50 levels; check brackets"):
        Document.parse(f"a: {'[' * depth}{']' * depth}\n", "m")
