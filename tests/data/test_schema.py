"""The result schema: names, types, features, and the round trip through every reader that users have."""

import json

import datasets
import pyarrow as pa
import pyarrow.dataset
import pytest

from photon.core import Box, ImageInfo, Point
from photon.data.clip import clip_box, clip_point
from photon.data.row import RowRef
from photon.data.schema import TaskColumn, features_of, result_schema
from photon.data.writer import PartWriter
from photon.errors import UsageError

TASKS = [TaskColumn("cars", "objects"), TaskColumn("doors", "points"), TaskColumn("ask", "text", reasoning=True)]
BRANDS = pa.dictionary(pa.int8(), pa.string())
KEPT = [pa.field("label", pa.int64()), pa.field("brand", BRANDS), pa.field("x", pa.float16())]
CLASSES = {"label": {"names": ["day", "night"], "_type": "ClassLabel"}, "left_out": {"dtype": "int8", "_type": "Value"}}


def schema() -> pa.Schema:
    return result_schema(TASKS, KEPT, CLASSES)


def rows() -> list[dict[str, object]]:
    """One good row, one that found nothing, one that failed."""
    ok = {"status": "ok", "finish_reason": "stop", "n_tokens": 4, "truncated": False, "task_fp": "f0"}
    box, point = Box(-0.25, 0.5, 0.75, 1.5, "car", 0.25, 0.5, 0.5), Point(0.5, -1.0, "door", 0.5, 0.5, 1.0)
    source = RowRef("a.parquet", 0, 0)._asdict()
    image = ImageInfo(3, 4, "oriented", 6, "L", 1, "ab")._asdict()
    good = {
        "row_id": "1",
        "status": "ok",
        "source": source,
        "image": image,
        "label": 1,
        "brand": "acme",
        "cars": {**ok, "objects": [clip_box(box)]},
        "doors": {**ok, "points": [clip_point(point)]},
        "ask": {**ok, "text": "yes", "reasoning": "since"},
        "job_id": "j",
    }
    nothing = {**good, "row_id": "2", "cars": {**ok, "objects": []}, "doors": {**ok, "points": []}, "brand": None}
    skipped = {"status": "skipped", "error_code": "IMAGE_MISSING"}
    failed = {
        "row_id": "3",
        "status": "failed",
        "error_code": "IMAGE_MISSING",
        "error_message": "no such file",
        "source": source,
        "cars": skipped,
        "doors": skipped,
        "ask": skipped,
        "job_id": "j",
    }
    return [good, nothing, failed]


def test_columns_in_order():
    names = ["row_id", "status", "error_code", "error_message", "source", "image", "label", "brand", "x"]
    assert schema().names == [*names, "cars", "doors", "ask", "job_id"]
    common = ["status", "error_code", "finish_reason", "n_tokens", "truncated", "task_fp"]
    assert [f.name for f in schema().field("cars").type] == [*common, "objects"]
    assert [f.name for f in schema().field("doors").type] == [*common, "points"]
    assert [f.name for f in schema().field("ask").type] == [*common, "text", "reasoning"]
    assert [f.name for f in TaskColumn("cap", "text").type] == [*common, "text"]
    assert [f.name for f in schema().field("source").type] == list(RowRef._fields)
    told = [name for name in ImageInfo._fields if name != "odd_orientation"]  # the run counts those
    assert [f.name for f in schema().field("image").type] == told
    box = schema().field("cars").type.field("objects").type.value_type
    assert [f.name for f in box if f.type == pa.float32()] == [f.name for f in box][1:-1]
    assert {f.name for f in box} == {*Box._fields, "clipped"}
    point = schema().field("doors").type.field("points").type.value_type
    assert {f.name for f in point} == set(Point._fields)


def test_kept_columns_have_their_own_types_and_features():
    assert schema().field("label").type == pa.int64()
    assert schema().field("x").type == pa.float16()
    assert schema().field("brand").type == pa.string()  # dictionaries differ between batches
    nested = pa.list_(pa.struct([pa.field("tag", pa.dictionary(pa.int8(), pa.string())), pa.field("n", pa.int8())]))
    plain = result_schema([], [pa.field("tags", nested)]).field("tags").type
    assert plain == pa.list_(pa.struct([pa.field("tag", pa.string()), pa.field("n", pa.int8())]))
    assert features_of(schema())["label"] == CLASSES["label"]
    assert "left_out" not in features_of(schema())
    assert features_of(pa.schema({"a": pa.int8()})) == {}
    assert features_of(pa.schema({"a": pa.int8()}, metadata={"huggingface": "{"})) == {}


def test_our_features_are_spelled_as_datasets_spells_them():
    theirs = datasets.Features.from_arrow_schema(schema()).to_dict()
    ours = features_of(schema())
    assert ours == {name: theirs[name] for name in ours}
    assert list(ours) == [name for name in schema().names if name not in ("brand", "x")]


@pytest.mark.parametrize("name", ["row_id", "status", "image", "source", "job_id"])
def test_names_that_collide(name):
    with pytest.raises(UsageError, match=f"kept column '{name}'"):
        result_schema(TASKS, [pa.field(name, pa.int8())], None)
    with pytest.raises(UsageError, match=f"task '{name}'"):
        result_schema([TaskColumn(name, "text")], [], None)


def test_names_that_collide_with_each_other():
    with pytest.raises(UsageError, match="task 'label' has the name of another"):
        result_schema([TaskColumn("label", "text")], KEPT, None)
    with pytest.raises(UsageError, match="task 'a' has the name of another"):
        result_schema([TaskColumn("a", "text"), TaskColumn("a", "points")], [], None)
    with pytest.raises(ValueError, match="text task"):
        TaskColumn("a", "points", reasoning=True)
    with pytest.raises(ValueError, match="kind must be"):
        TaskColumn("a", "boxes")


@pytest.mark.parametrize("ipc", ["file", "stream"])
def test_every_reader_gives_the_rows_back(ipc, tmp_path):
    part = PartWriter(tmp_path / "out", schema(), ipc=ipc).write(0, rows())
    if ipc == "file":
        table = pa.dataset.dataset(tmp_path / "out", format="ipc").to_table()
        assert table.schema.equals(schema(), check_metadata=True)
        check(table.to_pylist())
    else:
        restored = datasets.Dataset.from_file(str(part.path))
        assert restored.features["label"].names == ["day", "night"]
        check(restored.to_list())
    cache = str(tmp_path / "cache")
    loaded = datasets.load_dataset("arrow", data_files=str(part.path), split="train", cache_dir=cache)
    assert loaded.features["label"].names == ["day", "night"]
    assert loaded.features["cars"]["objects"].feature["clipped"].dtype == "bool"
    check(loaded.to_list())


def check(got: list[dict[str, object]]) -> None:
    good, nothing, failed = got
    box = {"label": "car", "x_min": 0.0, "y_min": 0.5, "x_max": 0.75, "y_max": 1.0}
    assert good["cars"]["objects"] == [{**box, "score": 0.25, "score_exist": 0.5, "score_loc": 0.5, "clipped": True}]
    point = {"label": "door", "x": 0.5, "y": 0.0, "score": 0.5, "score_exist": 0.5, "score_loc": 1.0}
    assert good["doors"]["points"] == [point]
    assert (good["ask"]["text"], good["ask"]["reasoning"], good["ask"]["n_tokens"]) == ("yes", "since", 4)
    assert (good["label"], good["brand"], nothing["brand"]) == (1, "acme", None)
    assert good["image"]["exif_orientation"] == 6
    # Nothing found is [], failed is null.
    assert (nothing["cars"]["objects"], nothing["doors"]["points"]) == ([], [])
    assert (failed["cars"]["objects"], failed["doors"]["points"], failed["ask"]["text"]) == (None, None, None)
    assert (failed["cars"]["status"], failed["error_code"], failed["image"]) == ("skipped", "IMAGE_MISSING", None)


def test_metadata_is_only_the_huggingface_key():
    assert list(schema().metadata) == [b"huggingface"]
    assert set(json.loads(schema().metadata[b"huggingface"])) == {"info"}
