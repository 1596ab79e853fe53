"""Arrow input: saved folders, splits, damage."""

import datasets
import pyarrow as pa
import pytest

from photon.data.arrow import ArrowSource
from photon.errors import InputError, UsageError

from .pictures import pictures


def dataset(count: int = 6) -> datasets.Dataset:
    rows = [{"image": {"bytes": data, "path": None}, "n": n, "label": n % 2} for n, data in enumerate(pictures(count))]
    features = {"image": datasets.Image(), "n": datasets.Value("int64"), "label": datasets.ClassLabel(names=["a", "b"])}
    return datasets.Dataset.from_list(rows, features=datasets.Features(features))


def test_a_saved_selection_keeps_its_order(tmp_path):
    dataset().select([4, 1, 3]).save_to_disk(tmp_path / "saved")
    rows = list(ArrowSource([str(tmp_path / "saved")], image="image", columns=["n"]).rows())
    assert [row.columns["n"] for row in rows] == [4, 1, 3]
    assert [row.image.source for row in rows] == [pictures(6)[n] for n in (4, 1, 3)]
    assert rows[2].row_id == f"{tmp_path}/saved/data-00000-of-00001.arrow:0:2"


def test_splits_have_to_be_named(tmp_path):
    datasets.DatasetDict({"train": dataset(), "test": dataset(2)}).save_to_disk(tmp_path / "both")
    with pytest.raises(UsageError, match=f"name one of {tmp_path}/both/train, {tmp_path}/both/test"):
        ArrowSource([str(tmp_path / "both")], image="image")
    assert ArrowSource([str(tmp_path / "both" / "test")], image="image").count() == 2


def test_other_folders_and_names(tmp_path):
    with pytest.raises(UsageError, match="was not written by Dataset"):
        ArrowSource([str(tmp_path)], image="image")
    with pytest.raises(UsageError, match="no file"):
        ArrowSource([str(tmp_path / "a.arrow")], image="image")
    with pytest.raises(UsageError, match="download"):
        ArrowSource(["hf://datasets/a/b/c.arrow"], image="image")
    (tmp_path / "state.json").write_text('{"_data_files": [], "_indices_data_files": [{"filename": "i.arrow"}]}')
    with pytest.raises(UsageError, match="save it again"):
        ArrowSource([str(tmp_path)], image="image")
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(InputError, match="cannot read"):
        ArrowSource([str(tmp_path)], image="image")


@pytest.mark.parametrize("form", ["file", "stream"])
def test_damage_is_named(form, tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"image": pictures(40), "n": list(range(40))})
    with (pa.ipc.new_file if form == "file" else pa.ipc.new_stream)(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    source = ArrowSource([str(path)], image="image", id="n")
    assert [row.ref.row_group for row in source.rows()] == [n // 10 for n in range(40)]
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    with pytest.raises(InputError, match=f"cannot read {path}"):
        list(source.rows())
    with pytest.raises(InputError, match=f"cannot read {path}"):
        ArrowSource([str(path)], image="image").count()
    path.write_bytes(b"")
    with pytest.raises(InputError, match=f"cannot read {path}"):
        ArrowSource([str(path)], image="image")


def test_pictures_outlive_the_map(tmp_path):
    """Rows are used by other threads, long after the file was closed."""
    dataset().save_to_disk(tmp_path / "saved")
    rows = list(ArrowSource([str(tmp_path / "saved")], image="image").rows())
    assert [row.image.source for row in rows] == pictures(6)
