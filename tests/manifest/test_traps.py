"""The traps of YAML, each with the very words that answer it."""

from __future__ import annotations

from pathlib import Path

import pytest

from photon.manifest.document import Document
from photon.manifest.load import parse_manifest
from photon.manifest.problems import ManifestError

TEXT = """\
version: 1
input: {parquet: rows.parquet}
model: {path: photon://null}
tasks:
  - name: cars
    type: detect
    objects: [car, bus]
  - name: ask
    type: query
    question: What is it?
output: {dir: out}
run: {seed: 0}
"""
QUOTES = "and text is wanted; put it in quotes"
LABEL = "m:7: tasks.0.objects.0"


@pytest.fixture(autouse=True)
def _rows(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("car,", "true,", f'{LABEL}: true is a truth value to YAML, {QUOTES}: "true"'),
        ("car,", "False,", f'{LABEL}: False is a truth value to YAML, {QUOTES}: "False"'),
        ("car,", "null,", f'{LABEL}: null is no value to YAML, {QUOTES}: "null"'),
        ("car,", "~,", f'{LABEL}: ~ is no value to YAML, {QUOTES}: "~"'),
        ("car,", "012,", f'{LABEL}: 012 is a number to YAML, {QUOTES}: "012"'),
        ("car,", "0x1F,", f'{LABEL}: 0x1F is a number to YAML, {QUOTES}: "0x1F"'),
        ("car,", "1.10,", f'{LABEL}: 1.10 is a number to YAML, {QUOTES}: "1.10"'),
        ("car,", "1e-3,", f'{LABEL}: 1e-3 is a number to YAML, {QUOTES}: "1e-3"'),
        ("car,", ".inf,", f'{LABEL}: .inf is a number to YAML, {QUOTES}: ".inf"'),
        ("car,", "{subject},", f'{LABEL}: {{subject}} is a mapping to YAML, {QUOTES}: "{{subject}}"'),
        ("car,", "[car],", f"{LABEL}: a list does not fit; write names of objects, for example [car, bus]"),
        ("car,", '"",', f"{LABEL}: is empty; write names of objects, for example [car, bus]"),
        ("[car, bus]", "012", f'{LABEL}: 012 is a number to YAML, {QUOTES}: "012"'),
        ("[car, bus]", "[]", "m:7: tasks.0.objects: is empty; write names of objects, for example [car, bus]"),
        ("[car, bus]", "", f"{LABEL}: is empty; write names of objects, for example [car, bus]"),
        ("What is it?", "", "m:10: tasks.1.question: is empty; write a question as text, "
         "for example What is in the picture?"),
        ("What is it?", "Is it so: yes?", "m:10: a second ': ' on one line, or a wrong indent; "
         'put text that holds ": " in quotes'),
        ("What is it?", "*what", "m:10: found undefined alias 'what'; put text that begins with * in quotes"),
        ("What is it?", "{brand} or not?", "m:10: expected <block end>, but found '<scalar>'; "
         'check indentation and brackets; text that begins with { or [ needs quotes: "{column} ..."'),
        ("What is it?", "'{brand'", "m:10: tasks.1.question: { is not part of a {column}; close the braces, "
         "or write {{ for the brace itself"),
        ("    question", "\tquestion", "m:10: a tab where YAML wants spaces; indent with spaces"),
        ("seed: 0", "seed: 1e3", "m:12: run.seed: 1000.0 does not fit; write an integer"),
        ("seed: 0", "seed: 1_000", "m:12: run.seed: '1_000' does not fit; write an integer"),
        ("seed: 0", 'seed: "0"', "m:12: run.seed: '0' does not fit; write an integer"),
        ("seed: 0", "seed: 2025-06-21", "m:12: run.seed: '2025-06-21' does not fit; write an integer"),
        ("seed: 0", "seed: yes", "m:12: run.seed: 'yes' does not fit; write an integer"),
        ("seed: 0", "seed: true", "m:12: run.seed: true does not fit; write an integer"),
        ("seed: 0", "sed: 0", "m:12: run.sed: unknown key; did you mean seed?"),
        ("seed: 0", "depth: 1", "m:12: run.depth: unknown key; it belongs in engine; known here: seed"),
        ("seed: 0", "objects: a", "m:12: run.objects: unknown key; it belongs in a task of type detect or point; "
         "known here: seed"),
        ("seed: 0", "zzz: 0", "m:12: run.zzz: unknown key; known here: seed"),
        ("seed: 0", "seed: 0, seed: 0", "m:12: run.seed: is given twice, first on line 12; keep one of them"),
        ("version: 1", "version: 1.0", "m:1: version: 1.0 does not fit; write 1"),
        ("version: 1", "version: true", "m:1: version: true does not fit; write 1"),
        ("run: {", "engine: {depth: true}\nrun: {", "m:12: engine.depth: true does not fit; write 1 or 2"),
        ("run: {", "engine: {depth: 2.0}\nrun: {", "m:12: engine.depth: 2.0 does not fit; write 1 or 2"),
        ("seed: 0", "<<: {seed: 0}", "m:12: run: YAML 1.2 has no merge keys; write out here what it would bring in"),
        ("version: 1", "version: 1\nversion: 1", "m:2: version: is given twice, first on line 1; keep one of them"),
        ("name: ask", "name: 2", 'm:8: tasks.1.name: 2 is a number to YAML, and text is wanted; put it in quotes: "2"'),
    ],
)  # fmt: skip
def test_golden(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(ManifestError) as caught:
        parse_manifest(Document.parse(TEXT.replace(old, new), "m"))
    assert str(caught.value) == message


def test_what_yaml_1_2_does_not_take_for_anything_but_text() -> None:
    text = TEXT.replace("[car, bus]", "[yes, no, on, off, Y, 2025-06-21, 1_000, 12:30, 0b1, nul, =, 0o9]")
    assert parse_manifest(Document.parse(text)).tasks[0].prompts == (
        *("yes", "no", "on", "off", "Y", "2025-06-21", "1_000", "12:30", "0b1", "nul", "=", "0o9"),
    )


def test_numbers_where_numbers_are_wanted() -> None:
    text = TEXT.replace(
        "question: What is it?", "question: What?\n    temperature: 5e-1\n    top_p: .5\n    top_k: 0o17"
    )
    settings = parse_manifest(Document.parse(text)).tasks[1].settings()
    assert (settings["temperature"], settings["top_p"], settings["top_k"]) == (0.5, 0.5, 15)
