"""Every value with its origin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from photon.manifest.document import Document
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.resolved import Resolved, resolve, resolved_table
from photon.manifest.spelling import spelt

TEXT = """\
version: 1
input: {parquet: rows.parquet, keep: [a, b]}
model: {path: photon://null}
tasks:
  - name: cars
    type: detect
    objects:
      - car
      - "{kind}"
  - {name: ask, type: query, question: "In ${OUT} or ${OUT}?"}
output:
  dir: ${OUT}/x
"""


@pytest.fixture
def manifest(workplace: Path) -> Manifest:
    (workplace / "rows.parquet").touch()
    (workplace / "m.yaml").write_text(TEXT)
    environment = {"OUT": "there", "PHOTON_BATCH__ERRORS__MIN_ROWS": "5"}
    return load_manifest("m.yaml", ["engine.depth=1", "tasks.0.objects.1=bus", "run={seed: 3}"], environment)


def test_origins(manifest: Manifest) -> None:
    values = {value.key: value for value in resolve(manifest)}
    assert values["version"] == Resolved("version", 1, "m.yaml:1")
    assert values["input.keep"] == Resolved("input.keep", ["a", "b"], "m.yaml:2")
    assert values["input.limit"] == Resolved("input.limit", None, "default")
    assert values["input.options"] == Resolved("input.options", {}, "default")
    assert values["tasks.0.objects"] == Resolved("tasks.0.objects", ["car", "bus"], "m.yaml:7, --set tasks.0.objects.1")
    assert values["tasks.1.question"].origin == "m.yaml:10 ${OUT}"
    assert values["tasks.0.max_objects"] == Resolved("tasks.0.max_objects", 50, "default")
    assert values["engine.depth"] == Resolved("engine.depth", 1, "--set engine.depth")
    assert values["engine.graphs"].origin == "default"
    assert values["run.seed"] == Resolved("run.seed", 3, "--set run")
    assert values["output.dir"] == Resolved("output.dir", "there/x", "m.yaml:12 ${OUT}")
    assert values["errors.min_rows"] == Resolved("errors.min_rows", 5, "environment PHOTON_BATCH__ERRORS__MIN_ROWS")


def test_every_value_is_there(manifest: Manifest) -> None:
    """What is shown, put back together, is the manifest."""
    text = manifest.model_dump(mode="json")
    for value in resolve(manifest):
        *outer, last = value.key.split(".")
        holder = text
        for part in outer:
            holder = holder[int(part)] if part.isdecimal() else holder[part]
        assert holder.pop(last) == value.value
    left = [*text["tasks"], *(text[key] for key in text if key not in ("tasks", "input"))]
    assert left == [{}] * len(left)
    assert text["input"] == {"urls": {}}


def test_the_table_is_aligned(manifest: Manifest) -> None:
    lines = resolved_table(resolve(manifest)).splitlines()
    assert len(lines) == len(resolve(manifest))
    starts = {tuple(found.start() for found in re.finditer(r"(?<=  )\S", line)) for line in lines}
    assert len(starts) == 1
    assert len(starts.pop()) == 2
    assert next(line for line in lines if line.startswith("engine.depth")).split() == [
        *("engine.depth", "1", "--set", "engine.depth"),
    ]


def test_one_long_value_does_not_push_the_others() -> None:
    rows = [Resolved("a", "x" * 100, "default"), Resolved("bb", 1, "m:1")]
    assert resolved_table(rows) == f"a   {'x' * 100}  default\nbb  1  m:1"


def test_a_manifest_built_in_python_has_only_defaults(manifest: Manifest) -> None:
    made = Manifest.model_validate(manifest.model_dump())
    assert {value.origin for value in resolve(made)} == {"default"}


WORDS = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f", exclude_categories=["Cc"])
)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS.filter(bool), inner, max_size=3),
)


@given(PLAIN)
def test_what_is_spelt_reads_back(value: object) -> None:
    assert Document.parse(f"a: [{spelt(value)}]\n").data == {"a": [value]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("data/*.parquet", "data/*.parquet"),
        ("*.parquet", '"*.parquet"'),
        ("012", '"012"'),
        ("true", '"true"'),
        ("yes", "yes"),
        ("{brand}", '"{brand}"'),
        ("Is it so?", "Is it so?"),
        ("a: b", '"a: b"'),
        ("", '""'),
        (["a", "1"], '[a, "1"]'),
        ({"data_dir": "x"}, "{data_dir: x}"),
        (0.5, "0.5"),
        (None, "null"),
    ],
)
def test_quotes_where_they_are_needed(value: object, text: str) -> None:
    assert spelt(value) == text
