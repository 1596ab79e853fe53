"""``${NAME}`` in the texts of a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from photon.manifest.document import Document
from photon.manifest.load import load_manifest
from photon.manifest.problems import ManifestError
from photon.manifest.variables import fill_variables


def filled(text: str, **environment: str) -> object:
    document = Document.parse(f"a: {text}\n", "m")
    fill_variables(document, environment)
    data: dict[str, object] = document.data
    return data["a"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${X}", "x y"),
        ("'${X}/${Y}/${X}'", "x y/7/x y"),
        ("['${X}', {b: '${Y}'}]", ["x y", {"b": "7"}]),
        ("${Y}", "7"),
        ("$${X}", "${X}"),
        ("'$${X} ${X}'", "${X} x y"),
        ("'$X {X} $ {X}'", "$X {X} $ {X}"),
        ("${NESTED}", "${X}"),
        ("'${EMPTY}'", ""),
        ("12", 12),
        ("null", None),
    ],
)
def test_filling(text: str, value: object) -> None:
    assert filled(text, X="x y", Y="7", NESTED="${X}", EMPTY="") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NO}", "m:1: a: the environment variable NO is not set; set it, or write $${NO} for the text itself"),
        ("'${two words}'", "m:1: a: ${two words} names no environment variable; write ${NAME}, "
         "or $${ for the text itself"),
        ("'costs ${'", "m:1: a: ${ names no environment variable; write ${NAME}, or $${ for the text itself"),
        ("'${}'", "m:1: a: ${} names no environment variable; write ${NAME}, or $${ for the text itself"),
    ],
)  # fmt: skip
def test_what_is_not_there(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        filled(text, X="x")
    assert str(caught.value) == message


def test_every_missing_name_is_told_and_nothing_that_follows_from_it() -> None:
    text = "version: 1\ninput: {parquet: '${DATA}/x.parquet'}\noutput:\n  dir: ${OUT}\n"
    with pytest.raises(ManifestError) as caught:
        fill_variables(Document.parse(text, "m"), {})
    assert [problem.key for problem in caught.value.problems] == ["input.parquet", "output.dir"]


def test_keys_and_overrides_are_left_as_they_are(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()
    (workplace / "m.yaml").write_text(
        "version: 1\ninput: {parquet: '${DATA}.parquet', options: {}}\nmodel: {path: photon://null}\n"
        "tasks: [{name: a, type: query, question: 'Does the {thing} cost $${thing}?'}]\noutput: {dir: x}\n"
    )
    made = load_manifest("m.yaml", ["output.dir=${OUT}"], {"DATA": "rows", "OUT": "no"})
    assert made.input.parquet == ("rows.parquet",)
    assert made.tasks[0].prompts == ("Does the {thing} cost ${thing}?",)
    assert made.output.dir == "${OUT}"
    assert made.document is not None
    assert made.document.variables == {("input", "parquet"): ("DATA",)}


def test_what_is_filled_in_stays_text(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()
    (workplace / "m.yaml").write_text(
        "version: 1\ninput: {parquet: rows.parquet, id: '${ID}', limit: '${LIMIT}'}\nmodel: {path: photon://null}\n"
        "tasks: [{name: a, type: caption}]\noutput: {dir: x}\n"
    )
    with pytest.raises(ManifestError) as caught:
        load_manifest("m.yaml", environment={"ID": "012", "LIMIT": "5"})
    assert str(caught.value) == (
        "m.yaml:2: input.limit: '5' does not fit; write a number of rows, or null for all "
        "(what ${LIMIT} fills in is text; PHOTON_BATCH__INPUT__LIMIT takes numbers and switches)"
    )
