"""What a wrong manifest is told: the exact line, key and remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from photon.errors import UsageError
from photon.manifest.document import Document
from photon.manifest.load import load_manifest, parse_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.paths import BUILT_IN
from photon.manifest.problems import ManifestError

HERE = "<here>"
GOOD = """\
version: 1
input:
  parquet: rows.parquet
model:
  path: photon://null
tasks:
  - name: cars
    type: detect
    objects: [car, bus]
  - {name: cap, type: caption}
output:
  dir: out
"""


@pytest.fixture(autouse=True)
def _rows(workplace: Path) -> None:
    (workplace / "rows.parquet").touch()


def told(text: str) -> list[str]:
    """The lines that a manifest is answered with, without the file's name."""
    with pytest.raises(ManifestError) as caught:
        parse_manifest(Document.parse(text, "m"))
    assert isinstance(caught.value, UsageError)
    assert caught.value.exit_code == 2
    lines = str(caught.value).splitlines()
    if len(lines) > 1:
        assert lines.pop(0) == f"m: {len(lines)} things to mend"
    return [line.strip().removeprefix("m:") for line in lines]


def test_a_good_manifest_has_the_defaults_of_the_design() -> None:
    made = parse_manifest(Document.parse(GOOD))
    assert made.input.parquet == ("rows.parquet",), "a scalar stands for a list of one"
    assert (made.input.image, made.input.id, made.input.keep, made.input.limit) == ("image", None, (), None)
    assert made.tasks[0].settings() == {"adapter": None, "max_objects": 50}
    assert (made.image.exif, made.image.max_pixels) == ("apply", 180_000_000)
    assert (made.engine.max_batch, made.engine.depth, made.engine.decision) == ("auto", 2, "masked")
    assert (made.output.chunk_rows, made.output.ipc) == ("auto", "file")
    assert (made.errors.max_failure_rate, made.errors.min_rows, made.run.seed) == (0.01, 200, 0)
    assert made.document is not None
    assert made.document.line(("tasks", 0, "objects", 1)) == 9


def test_words_that_older_yaml_took_for_booleans_are_labels() -> None:
    made = parse_manifest(Document.parse(GOOD.replace("[car, bus]", '[yes, no, on, "012", 2025-06-21]')))
    assert made.tasks[0].prompts == ("yes", "no", "on", "012", "2025-06-21")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("012", '9: tasks.0.objects.0: 012 is a number to YAML, and text is wanted; put it in quotes: "012"'),
        ("1.10", '9: tasks.0.objects.0: 1.10 is a number to YAML, and text is wanted; put it in quotes: "1.10"'),
        ("true", '9: tasks.0.objects.0: true is a truth value to YAML, and text is wanted; put it in quotes: "true"'),
        ("null", '9: tasks.0.objects.0: null is no value to YAML, and text is wanted; put it in quotes: "null"'),
        ("{a}", '9: tasks.0.objects.0: {a} is a mapping to YAML, and text is wanted; put it in quotes: "{a}"'),
    ],
)
def test_labels_that_are_not_text(label: str, message: str) -> None:
    assert told(GOOD.replace("[car, bus]", f"[{label}, bus]")) == [message]
    assert told(GOOD.replace("[car, bus]", label)) == [message], "without brackets too"
    as_name = message.replace("9: tasks.0.objects.0", "7: tasks.0.name")
    assert told(GOOD.replace("name: cars", f"name: {label}")) == [as_name]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    objects", "    max_objcts: 3\n    objects", "9: tasks.0.max_objcts: unknown key; "
         "did you mean max_objects?"),
        ("  path:", "  max_batch: 3\n  path:", "5: model.max_batch: unknown key; it belongs in engine; known here: "
         "path, revision, tokenizer, tokenizer_revision, dtype, device, adapters, adapter_semantics"),
        ("type: caption", "type: caption, objects: [a]", "10: tasks.1.objects: unknown key; "
         "it belongs in a task of type detect or point; "
         "known here: name, adapter, max_tokens, temperature, top_p, top_k, type, length"),
        ("  dir: out", "  dir: out\n  dir: there", "13: output.dir: is given twice, first on line 12; "
         "keep one of them"),
        ("version: 1", "version: 2", "1: version: 2 does not fit; write 1"),
        ("version: 1\n", "", "1: version: is missing; write 1"),
        ("    objects: [car, bus]\n", "", "7: tasks.0.objects: is missing; write names of objects, "
         "for example [car, bus]"),
        ("[car, bus]", "[]", "9: tasks.0.objects: is empty; write names of objects, for example [car, bus]"),
        ("[car, bus]", "", "9: tasks.0.objects.0: is empty; write names of objects, for example [car, bus]"),
        ("[car, bus]", "[car, car]", "9: tasks.0.objects: 'car' is listed twice; keep one of them"),
        ("type: detect", "type: detct", "8: tasks.0.type: 'detct' is no type of task; did you mean detect?"),
        ("type: detect", "type: segment", "8: tasks.0.type: 'segment' is no type of task; "
         "known here: caption, query, detect, point"),
        ("    type: detect\n", "", "7: tasks.0.type: is missing; write caption, query, detect, point"),
        ("name: cap,", "name: cars,", "10: tasks.1.name: cars names an earlier task too; choose another name"),
        ("name: cars", "name: row_id", "7: tasks.0.name: row_id is a column of every result; choose another name"),
        ("name: cars", "name: my cars", "7: tasks.0.name: 'my cars' cannot name a column; "
         "use letters, digits, _ and - alone"),
        ("[car, bus]", '["{car"]', "9: tasks.0.objects.0: { is not part of a {column}; "
         "close the braces, or write {{ for the brace itself"),
        ("output:", "engine: {depth: 3}\noutput:", "11: engine.depth: 3 does not fit; write 1 or 2"),
        ("output:", "engine: {max_batch: 0}\noutput:", "11: engine.max_batch: 0 does not fit; "
         "write auto or an integer of at least 1"),
        ("output:", "engine: {stop_repetition: 1}\noutput:", "11: engine.stop_repetition: 1 does not fit; "
         "write true, false, or null to follow decision"),
        ("output:", "image: {alpha_background: whit}\noutput:", "11: image.alpha_background: 'whit' is no colour; "
         'write a name such as white, or "#ffffff" in quotes'),
        ("dir: out", 'dir: "o\\0t"', "12: output.dir: 'o\\x00t' holds a NUL character, which no path can; "
         "leave it out"),
        ("output:", "errors:\noutput:", "11: errors: is empty; write a mapping"),
        ("  parquet: rows.parquet", "  image: image", "2: input: names no data; add one of parquet, arrow, folder, "
         "webdataset, hub, for example parquet: [data/*.parquet]"),
        ("  parquet: rows.parquet", "  parquet: []", "3: input.parquet: is empty; name the data, "
         "for example [data/*.parquet]"),
        ("  parquet: rows.parquet", "  parquet: rows.parquet\n  hub: a/b", "4: input.hub: "
         "parquet and hub are given; keep one of them"),
        ("  parquet: rows.parquet", "  parquet: rows.parquet\n  split: train", "4: input.split: goes with hub, "
         "not with parquet; leave it out"),
        ("  parquet: rows.parquet", "  parquet: rows.parquet\n  keep: status", "4: input.keep.0: "
         "status is a column of every result; rename it in the data or leave it out"),
        ("  parquet: rows.parquet", "  parquet: rows.parquet\n  keep: [cars]", "4: input.keep.0: "
         "cars names a task too; give the task another name"),
        ("photon://null", "photon://tine", "5: model.path: there is no photon://tine; did you mean photon://tiny?"),
        ("photon://null", "a/b", "5: model.path: there is no folder a/b; "
         "as a hub id it needs a revision (a tag or commit) beside it"),
        ("photon://null", "photon://null\n  tokenizer: a/b", "6: model.tokenizer: there is no folder a/b; "
         "as a hub id it needs a tokenizer_revision (a tag or commit) beside it"),
        ("photon://null", "photon://null\n  adapters: {a: no.pt}", "6: model.adapters.a: there is no no.pt; "
         f"relative paths start from {HERE}"),
        ("photon://null", "photon://null\n  adapters: {a: .}", "6: model.adapters.a: . is a folder; "
         "name the file in it, .safetensors or .pt"),
        ("photon://null", "photon://null\n  adapters: {a: 5}", "6: model.adapters.a: 5 is a number to YAML, "
         'and text is wanted; put it in quotes: "5"'),
        ("photon://null", "photon://null\n  adapters: [a.pt]", "6: model.adapters: a list does not fit; "
         "write a mapping of names to files, for example {cars: cars.safetensors}"),
        ("photon://null", "photon://null\n  adapter_semantics: both", "6: model.adapter_semantics: "
         "'both' does not fit; write merged, reference, or null to follow decision"),
        ("output:", "engine: {adapter_slots: 0}\noutput:", "11: engine.adapter_slots: 0 does not fit; "
         "write auto or an integer of at least 1"),
        ("type: caption}", "type: caption, adapter: a}", "10: tasks.1.adapter: 'a' is none of model.adapters; "
         "there are none; write {name: file} there, or leave this out"),
        ("  - {name: cap, type: caption}", "  - caption", "10: tasks.1: 'caption' does not fit; "
         "write a mapping with name and type in it"),
    ],
)  # fmt: skip
def test_one_problem_one_line(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) >= 1
    assert told(GOOD.replace(old, new, 1)) == [message.replace(HERE, os.getcwd())]


def test_adapters() -> None:
    Path("a.pt").touch()
    good = GOOD.replace("photon://null", "photon://null\n  adapters: {cars: a.pt, doors: a.pt}")
    made = parse_manifest(Document.parse(good.replace("type: caption}", "type: caption, adapter: doors}")))
    assert made.model.adapters == {"cars": "a.pt", "doors": "a.pt"}
    assert [task.settings()["adapter"] for task in made.tasks] == [None, "doors"]
    assert made.adapter_semantics == "merged"
    by_decision = parse_manifest(Document.parse(good.replace("output:", "engine: {decision: reference}\noutput:")))
    assert by_decision.adapter_semantics == "reference"
    assert told(good.replace("type: caption}", "type: caption, adapter: door}")) == [
        "11: tasks.1.adapter: 'door' is none of model.adapters; did you mean doors?"
    ]


def test_missing_files_name_the_folder_that_paths_start_from() -> None:
    here = os.getcwd()
    assert told(GOOD.replace("rows.parquet", "[rows.parquet, no.parquet, data/*.parquet]")) == [
        f"3: input.parquet.1: there is no no.parquet; relative paths start from {here}",
        f"3: input.parquet.2: no file matches data/*.parquet; relative paths start from {here}",
    ]
    assert told(GOOD.replace("photon://null", "models/mine/v1")) == [
        f"5: model.path: there is no models/mine/v1; relative paths start from {here}, a hub id reads owner/name"
    ]
    assert told(GOOD.replace("photon://null", "a/b\n  revision: v1\n  tokenizer: ./tok")) == [
        f"7: model.tokenizer: there is no ./tok; relative paths start from {here}, a hub id reads owner/name"
    ]


def test_addresses_with_a_scheme_are_left_to_the_readers() -> None:
    made = parse_manifest(Document.parse(GOOD.replace("rows.parquet", "s3://bucket/*.parquet")))
    assert made.input.parquet == ("s3://bucket/*.parquet",)


def test_the_built_in_models_are_those_that_can_be_loaded() -> None:
    from photon.engine.load import NULL
    from photon.models.load import SHIPPED

    assert set(BUILT_IN) == {*SHIPPED, NULL}


def test_everything_wrong_is_told_at_once_in_the_order_of_lines() -> None:
    text = GOOD.replace("rows.parquet", "no.parquet").replace("objects", "objcts").replace("name: cap", "name: cars")
    assert [line.split(": ")[1] for line in told(text + "foo: 1\nfoo: 2\n")] == [
        "input.parquet.0",
        "tasks.0.objects",
        "tasks.0.objcts",
        "tasks.1.name",
        "foo",
        "foo",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m: is empty; start from manifests/demo.yaml"),
        ("# nothing\n", "m: is empty; start from manifests/demo.yaml"),
        ("- a\n", "m:1: is not a mapping; start with version: 1"),
    ],
)
def test_files_that_are_no_manifest(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(Document.parse(text, "m"))
    assert str(caught.value) == message


def test_a_manifest_built_in_python_keeps_the_same_rules() -> None:
    plain = parse_manifest(Document.parse(GOOD)).model_dump()
    assert Manifest.model_validate(plain).tasks[0].name == "cars"
    with pytest.raises(ValidationError, match=r"tasks\.0\.name: status is a column of every result"):
        Manifest.model_validate({**plain, "tasks": [{**plain["tasks"][0], "name": "status"}]})


def test_the_manifests_in_the_box_are_in_order(
    monkeypatch: pytest.MonkeyPatch, manifest_file: Callable[..., Path]
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    full = load_manifest("manifests/full.yaml")
    assert load_manifest("manifests/demo.yaml").model.path == "photon://shapes"
    assert load_manifest("manifests/photos.yaml").model.path == "vikhyatk/moondream2"
    # full.yaml promises to show every default
    bare = load_manifest(manifest_file(input=f"{{parquet: {root}/photon/assets/demo/photos.parquet}}"))
    assert full.image == bare.image
    assert full.engine == bare.engine
    assert full.errors == bare.errors
    assert full.run == bare.run
    assert full.input.model_dump(exclude={"parquet"}) == bare.input.model_dump(exclude={"parquet"})
    for task in full.tasks:
        optional = {name: field.default for name, field in type(task).model_fields.items() if not field.is_required()}
        assert {name: getattr(task, name) for name in optional} == optional
