"""``init``: a manifest for data of any shape, which runs unchanged."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from photon.errors import UsageError
from photon.job.draft.draft import Draft, write_draft
from photon.job.draft.find import Found, find_data
from photon.job.draft.look import look_at
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.manifest.problems import ManifestError
from tests.job.inputs import png, write_parquet


def answered(draft: Draft, rows: int) -> dict[str, list[Any]]:
    """What the manifest gives as it stands, but for the model: columns of its output."""
    manifest = load_manifest(draft.path, ["model.path=photon://null"], {})
    summary = run(manifest)
    assert (summary.rows, summary.ok) == (rows, rows)
    columns: dict[str, list[Any]] = ds.dataset(f"{manifest.output.dir}/data", format="ipc").to_table().to_pydict()
    return columns


def pictures(folder: Path, count: int) -> Path:
    (folder / "more").mkdir(parents=True)
    for i in range(count):
        (folder / "more" / f"{i}.png").write_bytes(png())
    return folder


def test_parquet_of_structs(workplace: Path) -> None:
    write_parquet(
        workplace / "cars.parquet", [png()] * 5, brand=["Fiat"] * 5, year=list(range(5)), note=["x" * 2000] * 5
    )
    draft = write_draft(["cars.parquet"])
    assert draft.path == Path("cars.yaml")
    assert draft.text() == (
        "wrote cars.yaml: 5 rows, images in image, ids in name\n"
        "look it over, then: photon-batch run cars.yaml --limit 20"
    )
    manifest = load_manifest("cars.yaml", environment={})
    assert manifest.input.keep == ("subject", "brand", "year"), "what is as long as a page is left out"
    assert manifest.model.path == "photon://shapes"
    assert manifest.output.dir == "outputs/cars"
    assert '  #   question: "Is there a {subject}?" # {column} is filled from each row: subject, brand\n' in (
        Path("cars.yaml").read_text()
    )
    made = answered(draft, 5)
    assert made["row_id"] == [f"row{i}" for i in range(5)]
    assert made["year"] == [0, 1, 2, 3, 4]
    assert {"things", "caption"} <= made.keys()


def test_parquet_of_bytes_under_other_names(workplace: Path) -> None:
    (workplace / "data").mkdir()
    for shard in range(2):
        cells = {
            "jpg": [png()] * 3,
            "thumb": [b"no"] * 3,
            "things": [1.5] * 3,
            "uid": [f"{shard}-{i}" for i in range(3)],
        }
        pq.write_table(pa.table(cells), f"data/train-{shard}.parquet")
    draft = write_draft(["data"], Path("mine.yaml"))
    manifest = load_manifest("mine.yaml", environment={})
    assert manifest.input.parquet == ("data/*.parquet",)
    assert manifest.output.dir == "outputs/mine", "called after the manifest, as one would look for it"
    assert (manifest.input.image, manifest.input.id, manifest.input.keep) == ("jpg", "uid", ("things",))
    assert [task.name for task in manifest.tasks] == ["things_found", "caption"], "a kept column has the name already"
    assert answered(draft, 6)["row_id"] == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]


def test_a_folder_of_pictures(workplace: Path) -> None:
    draft = write_draft([str(pictures(workplace / "holiday photos", 3))])
    assert draft.path == Path("holiday-photos.yaml")
    manifest = load_manifest(draft.path, environment={})
    assert (manifest.input.id, manifest.input.keep) == ("file_name", ("folder",))
    assert answered(draft, 3)["row_id"] == ["more/0.png", "more/1.png", "more/2.png"]


def test_the_folder_that_one_stands_in(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results cannot go where pictures are searched for."""
    monkeypatch.chdir(pictures(workplace / "photos", 2))
    draft = write_draft(["."])
    assert draft.path == Path("photos.yaml")
    assert load_manifest(draft.path, environment={}).output.dir == str(workplace / "photos-answers")
    answered(draft, 2)


def test_tars(workplace: Path) -> None:
    pictures(workplace / "in", 3)
    with tarfile.open("shard-0.tar", "w") as tar:
        for i in range(3):
            Path(f"in/{i}.json").write_text(json.dumps({"caption": f"thing {i}", "size": i}))
            tar.add(f"in/more/{i}.png", f"{i}.png")
            tar.add(f"in/{i}.json", f"{i}.json")
    draft = write_draft(["shard-0.tar"])
    manifest = load_manifest(draft.path, environment={})
    assert (manifest.input.webdataset, manifest.input.id) == (("shard-0.tar",), "__key__")
    assert set(manifest.input.keep) >= {"json.caption", "json.size"}
    made = answered(draft, 3)
    assert made["row_id"] == ["0", "1", "2"]
    assert made["json.caption"] == ["thing 0", "thing 1", "thing 2"]


def test_a_saved_data_set(workplace: Path) -> None:
    import datasets

    table = pa.table({"picture": [png()] * 4, "label": ["cat"] * 4})
    made = datasets.Dataset(table)
    datasets.DatasetDict({"test": made, "train": made.select(range(3))}).save_to_disk("saved")
    draft = write_draft(["saved"])
    manifest = load_manifest(draft.path, environment={})
    assert manifest.input.arrow == ("saved/train",), "one split, train before others"
    assert (manifest.input.image, manifest.input.id, manifest.input.keep) == ("picture", None, ("label",))
    answered(draft, 3)


def test_paths_as_cells(workplace: Path) -> None:
    pictures(workplace / "photos", 4)
    cells = {"title": ["a b", "c d", "e f", "g h"], "where": [f"photos/more/{i}.png" for i in range(4)]}
    pq.write_table(pa.table(cells), "list.parquet")
    draft = write_draft(["list.parquet"])
    manifest = load_manifest(draft.path, environment={})
    assert (manifest.input.image, manifest.input.id) == ("where", None), "texts of several words are no ids"
    answered(draft, 4)


def test_urls_are_fetched_in_the_open(workplace: Path) -> None:
    pq.write_table(pa.table({"url": ["https://nowhere.invalid/a.jpg", None], "n": [1, 2]}), "links.parquet")
    draft = write_draft(["links.parquet"])
    assert load_manifest(draft.path, environment={}).input.urls.fetch
    assert "  urls: {fetch: true}                   # it holds URLs, which are downloaded" in draft.path.read_text()


def test_one_broken_picture_hides_no_column(workplace: Path) -> None:
    write_parquet(workplace / "rows.parquet", [b"broken", None, png(), png()])
    assert look_at(find_data(["rows.parquet"])).image == "image"


def test_many_columns(workplace: Path) -> None:
    columns = {f"c{i:02}": [f"{i} x"] * 2 for i in range(20)}
    write_parquet(workplace / "rows.parquet", [png()] * 2, **columns)
    draft = write_draft(["rows.parquet"])
    assert len(load_manifest(draft.path, environment={}).input.keep) == 12
    assert "  # also there: c11, c12, c13, c14, c15, c16, c17, c18, c19\n" in draft.path.read_text()


def test_columns_whose_names_are_hard_to_write(workplace: Path) -> None:
    odd = {"012": ["a b"] * 2, "true": ["b c"] * 2, "a: b": ["c d"] * 2, "${x}": ["d e"] * 2, "status": ["x y"] * 2}
    write_parquet(workplace / "rows.parquet", [png()] * 2, **odd)
    draft = write_draft(["rows.parquet"])
    assert load_manifest(draft.path, environment={}).input.keep == ("subject", "012", "true", "a: b", "${x}")
    answered(draft, 2)


def test_nothing_is_overwritten(workplace: Path) -> None:
    write_parquet(workplace / "rows.parquet", [png()])
    Path("rows.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"^rows\.yaml is there already; choose another name with --out, or remove it"):
        write_draft(["rows.parquet"])
    assert Path("rows.yaml").read_text() == "mine"
    assert write_draft(["rows.parquet"], Path("other.yaml")).path.exists()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["nowhere"], "there is no nowhere (from "),
        (["owner/data"], "a hub data set goes into a manifest as input.hub"),
        (["empty"], "empty holds nothing that could be read; give Parquet files"),
        (["x.csv"], "cannot tell what x.csv is; give Parquet files"),
        (["a.png"], "of pictures, give the folder that they are in"),
        (["x.parquet", "x.tar"], "of one kind at a time"),
    ],
)
def test_what_is_nothing_we_know(workplace: Path, names: Sequence[str], message: str) -> None:
    Path("empty").mkdir()
    for name in ("x.csv", "a.png", "x.parquet", "x.tar"):
        Path(name).touch()
    with pytest.raises(UsageError) as caught:
        find_data(names)
    assert message in str(caught.value)


def test_data_without_pictures(workplace: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "b"], "blob": [b"x", b"y"]}), "rows.parquet")
    with pytest.raises(UsageError) as caught:
        write_draft(["rows.parquet"])
    assert "no column of rows.parquet holds pictures" in str(caught.value)
    assert "text (string), blob (binary)" in str(caught.value)
    assert not isinstance(caught.value, ManifestError)
    assert not Path("rows.yaml").exists()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (
            ["hf://datasets/o/n@main/data/*.parquet"],
            Found("parquet", ("hf://datasets/o/n@main/data/*.parquet",), "data"),
        ),
        (["s3://bucket/cars.parquet"], Found("parquet", ("s3://bucket/cars.parquet",), "cars")),
        (["deep"], Found("parquet", ("deep/**/*.parquet",), "deep")),
        (["brackets[1]"], Found("webdataset", ("brackets[[]1]/*.tar",), "brackets-1")),
    ],
)
def test_what_some_data_is(workplace: Path, names: Sequence[str], found: Found) -> None:
    for name in ("deep/a/x.parquet", "deep/b/x.parquet", "deep/readme.md", "deep/logo.png", "brackets[1]/0.tar"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    assert find_data(names) == found
