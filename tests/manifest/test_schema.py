"""The JSON Schema accepts what load accepts, and refuses what it can see is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from photon.manifest.document import Document
from photon.manifest.load import parse_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.problems import ManifestError
from photon.manifest.schema import DIALECT, manifest_schema

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).parents[2]
GOOD = """\
version: 1
input: {parquet: rows.parquet}
model: {path: photon://null}
tasks:
  - {name: cars, type: detect, objects: [car, bus]}
  - {name: ask, type: query, question: Is it?}
output: {dir: out}
"""


def accepts(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(manifest_schema()).is_valid(Document.parse(text).data))


def loads(text: str) -> bool:
    try:
        parse_manifest(Document.parse(text))
    except ManifestError:
        return False
    return True


def test_it_is_a_schema_of_its_dialect() -> None:
    schema = manifest_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    assert "$id" not in schema
    for name, section in schema["$defs"].items():
        for key, field in section["properties"].items():
            assert field["description"], f"{name}.{key}"
            assert field["title"].lower() != key.replace("_", " "), f"{name}.{key} has a title of its own"


@pytest.mark.parametrize("name", ["demo", "full", "photos"])
def test_the_manifests_in_the_box(name: str) -> None:
    assert accepts((ROOT / f"manifests/{name}.yaml").read_text())


def test_a_whole_manifest_with_every_default_written_out(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()
    dumped: dict[str, Any] = parse_manifest(Document.parse(GOOD)).model_dump(mode="json")
    jsonschema.Draft202012Validator(manifest_schema()).validate(dumped)
    assert Manifest.model_validate(dumped).model_dump(mode="json") == dumped


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[car, bus]", "car"),
        ("[car, bus]", "[yes, no, on]"),
        ("parquet: rows.parquet", "parquet: [rows.parquet], keep: a, id: null"),
        ("parquet: rows.parquet", "parquet: rows.parquet, hub: null, arrow: []"),
        ("parquet: rows.parquet", "hub: imagefolder, options: {data_dir: x, deep: [1, {a: b}]}"),
        ("question: Is it?", "question: Is it?, spatial_refs: [0.5, 0.5]"),
        ("question: Is it?", "question: Is it?, spatial_refs: [[0, 0, 1, 1], [0.5, 1]]"),
        ("question: Is it?", "question: Is it?, temperature: 1, top_p: 5e-1, adapter: null"),
        ("output:", "engine: {max_batch: 4, graphs: false, stop_repetition: null}\noutput:"),
        ("output:", "errors: {max_failure_rate: 1}\nrun: {seed: -3}\noutput:"),
    ],
)
def test_right_ones(workplace: Path, old: str, new: str) -> None:
    (workplace / "rows.parquet").touch()
    text = GOOD.replace(old, new)
    assert loads(text)
    assert accepts(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "version: 2"),
        ("version: 1\n", ""),
        ("parquet: rows.parquet", "image: image"),
        ("parquet: rows.parquet", "parquet: rows.parquet, keeep: [a]"),
        ("parquet: rows.parquet", "parquet: 5"),
        ("[car, bus]", "[]"),
        ("[car, bus]", "[car, 012]"),
        ("[car, bus]", "[car, true]"),
        ("[car, bus]", "null"),
        ("type: detect", "type: detct"),
        ("type: detect", "type: caption"),
        ("name: cars, ", ""),
        ("objects: [car, bus]", "objects: [car, bus], max_objects: 0"),
        ("question: Is it?", "question: Is it?, spatial_refs: [[0, 0, 1]]"),
        ("question: Is it?", "question: Is it?, spatial_refs: [[0, 2]]"),
        ("question: Is it?", 'question: ""'),
        ("output: {dir: out}", "output: {dir: out, ipc: parquet}"),
        ("output:", "engine: {depth: 3}\noutput:"),
        ("output:", "engine: {max_batch: all}\noutput:"),
        ("output:", "tsks: []\noutput:"),
    ],
)
def test_wrong_ones(workplace: Path, old: str, new: str) -> None:
    (workplace / "rows.parquet").touch()
    assert old in GOOD
    text = GOOD.replace(old, new)
    assert not loads(text)
    assert not accepts(text)
