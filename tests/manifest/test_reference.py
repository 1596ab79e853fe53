"""docs/manifest.md: its reference is what the schema says, and what it promises about YAML is so."""

from __future__ import annotations

import re
from pathlib import Path

from photon.manifest.document import Document
from photon.manifest.manifest import Manifest
from photon.manifest.reference import END, START, reference

TEXT = (Path(__file__).parents[2] / "docs/manifest.md").read_text(encoding="utf-8")


def test_the_document_holds_the_reference() -> None:
    _, _, rest = TEXT.partition(START + "\n")
    held, end, _ = rest.partition(END)
    assert end
    assert held == reference(), "put what `photon-batch schema --markdown` prints between its two marks"


def test_every_key_is_in_it() -> None:
    made = reference()
    for section, field in Manifest.model_fields.items():
        keys = getattr(field.annotation, "model_fields", {})
        for key in keys:
            assert f"| `{key}` |" in made, f"{section}.{key}"
    assert "| `spatial_refs` | query |" in made
    assert "| `name` | all | needed |" in made


def test_cells_hold_no_bars_of_their_own() -> None:
    for line in reference().splitlines():
        if line.startswith("|"):
            assert line.count("|") in (5, 6), line


def test_the_traps_are_read_as_it_says() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| `(.+?)` \|$", TEXT, re.MULTILINE)
    kinds = {"the number 12": 12, "the number 1.1": 1.1, "a truth value": True, "nothing": None}
    lists = [row for row in rows if row[0].startswith("objects") and row[1] in kinds]
    assert len(lists) == 4
    for written, read, instead in lists:
        (value,) = Document.parse(written).data["objects"]
        assert value == kinds[read]
        assert type(value) is type(kinds[read])
        assert Document.parse(instead).data["objects"] == [re.findall(r"\[(.*)\]", written)[0]]
    assert Document.parse("objects: [{brand}]").data["objects"] == [{"brand": None}]
    assert Document.parse("alpha_background: #ffffff").data["alpha_background"] is None
