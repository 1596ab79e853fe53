"""Manifests against the columns of their input, with the lines that they are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from photon.errors import InputError, UsageError
from photon.job.sources import open_source
from photon.manifest.columns import check_columns
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.problems import ManifestError
from tests.job.inputs import png, write_parquet

TEXT = """\
version: 1
input:
  parquet: rows.parquet
  id: name
  keep: [subject]
model: {path: photon://null}
tasks:
  - name: ask
    type: query
    question: "Is it {subject}?"
  - name: things
    type: detect
    objects: [cat, "{subject}"]
output: {dir: out}
"""


@pytest.fixture(autouse=True)
def _rows(workplace: Path) -> None:
    write_parquet(workplace / "rows.parquet", [png()] * 4, tags=[["a"]] * 4)


def told(text: str) -> list[str]:
    Path("m.yaml").write_text(text)
    with pytest.raises(ManifestError) as caught:
        open_source(load_manifest("m.yaml"))
    lines = str(caught.value).splitlines()
    return [line.strip() for line in (lines[1:] or lines)]


def test_all_is_well() -> None:
    Path("m.yaml").write_text(TEXT)
    source = open_source(load_manifest("m.yaml"))
    assert source.count() == 4
    first = next(iter(source.rows()))
    assert first.row_id == "row0"
    assert first.columns == {"subject": "cat"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: name", "id: nam", "m.yaml:4: input.id: the input has no column nam; did you mean name?"),
        ("[subject]", "[subject, zzz]", "m.yaml:5: input.keep.1: the input has no column zzz; "
         "known here: image, name, subject, tags"),
        ("it {subject}", "it {subjct}", "m.yaml:10: tasks.0.question: {subjct} names no column of the input; "
         "did you mean subject? (write {{ for a brace itself)"),
        ('"{subject}"]', '"{sbject}"]', "m.yaml:13: tasks.1.objects.1: {sbject} names no column of the input; "
         "did you mean subject? (write {{ for a brace itself)"),
        ("it {subject}", "it {tags}", "m.yaml:10: tasks.0.question: column tags holds list<element: string>; "
         "fill prompts from text or numbers"),
    ],
)  # fmt: skip
def test_names_that_lead_nowhere(old: str, new: str, message: str) -> None:
    assert told(TEXT.replace(old, new)) == [message]


def test_the_image_column_too() -> None:
    (line,) = told(TEXT.replace("  id: name", "  image: img\n  id: name"))
    assert line.startswith("m.yaml:4: input.image: ")
    assert "no column 'img'" in line
    (line,) = told(TEXT.replace("  id: name", "  image: tags\n  id: name"))
    assert line.startswith("m.yaml:4: input.image: column 'tags'")


def test_several_at_once() -> None:
    text = TEXT.replace("id: name", "id: nam").replace("{subject}", "{sub}")
    assert [line.split(": ")[1] for line in told(text)] == ["input.id", "tasks.0.question", "tasks.1.objects.1"]


def test_a_manifest_built_in_python_has_no_lines() -> None:
    Path("m.yaml").write_text(TEXT.replace("id: name", "id: nam"))
    made = Manifest.model_validate(load_manifest("m.yaml").model_dump())
    with pytest.raises(ManifestError, match=r"^manifest: input\.id: the input has no column nam; did you mean name\?$"):
        check_columns(made, pq.read_schema("rows.parquet"))


def test_arrow_files_and_broken_ones(manifest_file: Callable[..., Path]) -> None:
    table = pq.read_table("rows.parquet")
    with pa.ipc.new_file("rows.arrow", table.schema) as writer:
        writer.write_table(table)
    manifest = load_manifest(manifest_file(input="{arrow: rows.arrow}"))
    assert open_source(manifest).count() == 4
    Path("rows.arrow").write_bytes(b"nothing of the sort")
    with pytest.raises(InputError, match=r"cannot read rows\.arrow"):
        open_source(manifest)


def test_a_local_loader(manifest_file: Callable[..., Path]) -> None:
    Path("photos").mkdir()
    Path("photos/a.png").write_bytes(png())
    manifest = load_manifest(
        manifest_file(input="{hub: imagefolder, options: {data_dir: photos}}", tasks="[{name: cap, type: caption}]")
    )
    assert [row.index for row in open_source(manifest).rows()] == [0]


def test_a_hub_id_without_a_revision_is_told_with_its_line(manifest_file: Callable[..., Path]) -> None:
    manifest = load_manifest(manifest_file(input="\n  hub: someone/photos"))
    with pytest.raises(UsageError, match=r"m\.yaml:3: input\.hub: 'someone/photos' .* needs a revision"):
        open_source(manifest)
