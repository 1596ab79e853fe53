"""Values from --set and from the environment: what they become, who wins, and how a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from photon.errors import UsageError
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.problems import ManifestError

TEXT = """\
version: 1
input:
  parquet: rows.parquet
  keep: [a, b]
model: {path: photon://null}
tasks:
  - name: cars
    type: detect
    objects: [car, bus]
  - {name: cap, type: caption}
output:
  dir: out
engine: {depth: 2}
"""


@pytest.fixture(autouse=True)
def _files(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()
    (workplace / "m.yaml").write_text(TEXT)


def load(*sets: str, **environment: str) -> Manifest:
    return load_manifest("m.yaml", sets, environment)


def told(*sets: str, **environment: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        load(*sets, **environment)
    lines = str(caught.value).splitlines()
    return [line.strip() for line in (lines[1:] or lines)]


@pytest.mark.parametrize(
    ("given", "section", "key", "value"),
    [
        ("engine.depth=1", "engine", "depth", 1),
        ("engine.max_batch=64", "engine", "max_batch", 64),
        ("engine.max_batch=auto", "engine", "max_batch", "auto"),
        ("engine.memory_fraction=5e-1", "engine", "memory_fraction", 0.5),
        ("engine.stop_repetition=false", "engine", "stop_repetition", False),
        ("engine.stop_repetition=", "engine", "stop_repetition", None),
        ("errors.min_rows=7", "errors", "min_rows", 7),
        ("input.limit=12", "input", "limit", 12),
        ('input.id="012"', "input", "id", "012"),
        ("input.id=yes", "input", "id", "yes"),
        ("input.id=a: b #c", "input", "id", "a: b #c"),
        ("input.id=x=y", "input", "id", "x=y"),
        ("input.keep=[c]", "input", "keep", ("c",)),
        ("input.keep=c", "input", "keep", ("c",)),
        ("input.keep.1=c", "input", "keep", ("a", "c")),
        ("image.alpha_background=#ffffff", "image", "alpha_background", "#ffffff"),
        ("engine={depth: 1}", "engine", "depth", 1),
    ],
)
def test_what_a_value_becomes(given: str, section: str, key: str, value: Any) -> None:
    made = getattr(getattr(load(given), section), key)
    assert made == value
    assert type(made) is type(value)


def test_tasks_by_their_number() -> None:
    made = load("tasks.0.max_objects=100", "tasks.0.objects.1=van", "tasks.1.length=short").model_dump()["tasks"]
    assert made[0]["max_objects"] == 100
    assert made[0]["objects"] == ("car", "van")
    assert made[1]["length"] == "short"


def test_who_wins() -> None:
    assert load().engine.depth == 2
    assert load(PHOTON_BATCH__ENGINE__DEPTH="1").engine.depth == 1
    assert load("engine.depth=2", PHOTON_BATCH__ENGINE__DEPTH="1").engine.depth == 2
    assert load("engine.depth=2", "engine.depth=1").engine.depth == 1
    assert load("errors.min_rows=3", PHOTON_BATCH__RUN__SEED="4").run.seed == 4


def test_outer_keys_of_the_environment_come_before_inner_ones() -> None:
    made = load(PHOTON_BATCH__ENGINE="{graphs: false, depth: 2}", PHOTON_BATCH__ENGINE__DEPTH="1").engine
    assert (made.depth, made.graphs) == (1, False)


def test_other_variables_are_nobodys_business() -> None:
    load(PHOTON_BATCH_SHARD="3", PHOTON_BATCH="x", HOME="/")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("engine.deph=1", "--set engine.deph: unknown key; did you mean depth?"),
        ("engin.depth=1", "--set engin.depth: engin: unknown key; did you mean engine?"),
        ("tasks.0.max_objcts=1", "--set tasks.0.max_objcts: unknown key; did you mean max_objects?"),
        ("input.id=012", '--set input.id: 012 is a number to YAML, and text is wanted; put it in quotes: "012"'),
        ("engine.depth=3", "--set engine.depth: 3 does not fit; write 1 or 2"),
        ("engine.depth=", "--set engine.depth: is empty; write 1 or 2"),
        ("engine={deph: 1}", "--set engine: engine.deph: unknown key; did you mean depth?"),
        ("tasks.0.objects=[car, true]", "--set tasks.0.objects: tasks.0.objects.1: true is a truth value to YAML, "
         'and text is wanted; put it in quotes: "true"'),
        ("tasks.0.objects=[car", "--set tasks.0.objects: expected ',' or ']', but got '<stream end>'; "
         'check indentation and brackets; text that begins with { or [ needs quotes: "{column} ..."'),
        ("engine={depth: 1, depth: 2}", "--set engine: engine.depth: is given twice, first on line 1; "
         "keep one of them"),
        ("tasks.2.name=x", "--set tasks.2.name: tasks has no '2'; it is a list of 2, numbered from 0"),
        ("tasks.cars.name=x", "--set tasks.cars.name: tasks has no 'cars'; it is a list of 2, numbered from 0"),
        ("output.dir.x=y", "--set output.dir.x: output.dir is neither a mapping nor a list; set output.dir as a whole"),
        ("tasks.0.name=cap", "m.yaml:10: tasks.1.name: cap names an earlier task too; choose another name"),
        ("tasks.1.name=cars", "--set tasks.1.name: cars names an earlier task too; choose another name"),
        ("run.seed=" + "1" * 5000, "--set run.seed: a number of 5000 digits; write a smaller one, "
         "or put text in quotes"),
        ("engine.depth", "--set engine.depth: is not KEY=VALUE; write both, for example --set engine.depth=1"),
        ("=1", "--set =1: is not KEY=VALUE; write both, for example --set engine.depth=1"),
    ],
)  # fmt: skip
def test_what_a_wrong_one_is_told(given: str, message: str) -> None:
    assert told(given) == [message]


def test_a_file_that_is_not_there() -> None:
    (line,) = told("input.parquet=no.parquet")
    assert line.startswith("--set input.parquet: input.parquet.0: there is no no.parquet; relative paths start from ")


def test_a_wrong_one_of_the_environment() -> None:
    assert told(PHOTON_BATCH__ENGINE__DEPTH="3") == [
        "PHOTON_BATCH__ENGINE__DEPTH: engine.depth: 3 does not fit; write 1 or 2"
    ]
    assert told(PHOTON_BATCH__ENGIN__DEPTH="3") == [
        "PHOTON_BATCH__ENGIN__DEPTH: engin: unknown key; did you mean engine?"
    ]


def test_all_at_once_with_those_of_the_file_first() -> None:
    Path("m.yaml").write_text(TEXT.replace("dir: out", "dirr: out"))
    with pytest.raises(ManifestError) as caught:
        load("engine.depth=3", "run.sed=1", PHOTON_BATCH__ERRORS__MIN_ROWS="-1")
    assert str(caught.value).splitlines() == [
        "m.yaml: 5 things to mend",
        "  m.yaml:11: output.dir: is missing; write a folder of its own for the results, for example outputs/cars",
        "  m.yaml:12: output.dirr: unknown key; did you mean dir?",
        "  --set engine.depth: 3 does not fit; write 1 or 2",
        "  --set run.sed: unknown key; did you mean seed?",
        "  PHOTON_BATCH__ERRORS__MIN_ROWS: errors.min_rows: -1 does not fit; write an integer of at least 0",
    ]


def test_a_mended_value_is_no_longer_the_files_mistake() -> None:
    Path("m.yaml").write_text(TEXT.replace("depth: 2", "depth: 5"))
    assert told() == ["m.yaml:13: engine.depth: 5 does not fit; write 1 or 2"]
    assert load("engine.depth=1").engine.depth == 1
    assert load("engine={}").engine.depth == 2


def test_what_a_run_records_is_what_was_resolved() -> None:
    dumped = load("tasks.0.max_objects=3", PHOTON_BATCH__OUTPUT__DIR="there").model_dump(mode="json")
    assert dumped["tasks"][0]["max_objects"] == 3
    assert dumped["output"]["dir"] == "there"
