"""docs/inputs.md: every example in it is run, on data of the kind that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from photon.job.run import run
from photon.manifest.load import load_manifest
from tests.data.fake_web import Web, serve_web
from tests.data.pictures import pictures
from tests.data.tars import write_tar

TEXT = (Path(__file__).parents[2] / "docs/inputs.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\ninput: (.*)\n```", TEXT)
PICTURES = pictures(4)
NAMES = ["r0", "r1", "r2", "r3"]
#: The ids, or places, that the rows of an example get, by a word in it.
WANT = {
    "data/*.parquet": NAMES,
    "arrow": NAMES,
    "folder: photos": ["a/0.png", "a/1.png", "a/2.png", "a/3.png"],
    "webdataset": NAMES,
    "imagefolder": [f"imagefolder/train:0:{n}" for n in range(4)],
    "links": NAMES,
}


def write_data(url: str) -> None:
    table = pa.table({"image": PICTURES, "name": NAMES, "camera": ["left"] * 4})
    Path("data").mkdir()
    pq.write_table(table, "data/a.parquet")
    pq.write_table(pa.table({"url": [f"{url}/{n}" for n in range(4)], "name": NAMES}), "links.parquet")
    datasets.Dataset(table).save_to_disk("saved")
    for folder in ("photos/a", "labelled/cat", "labelled/dog"):
        Path(folder).mkdir(parents=True)
    for n, data in enumerate(PICTURES):
        Path(f"photos/a/{n}.png").write_bytes(data)
        Path(f"labelled/{('cat', 'dog')[n // 2]}/{n}.png").write_bytes(data)
    Path("shards").mkdir()
    parts = {"txt": b"text", "cls": b"3", "json": b'{"caption": "a cat"}'}
    for n, name in enumerate(NAMES):
        members = [(f"{name}.png", PICTURES[n]), *((f"{name}.{part}", data) for part, data in parts.items())]
        write_tar(Path(f"shards/{n}.tar"), members)


@pytest.mark.parametrize("word", WANT)
def test_the_examples_run(word: str, manifest_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (example,) = (example for example in EXAMPLES if word in example and "hf://" not in example)
    with serve_web(Web({f"/{n}": data for n, data in enumerate(PICTURES)})) as web:
        write_data(web.url)
        manifest = load_manifest(manifest_file(input=example, tasks="[{name: cap, type: caption}]"))
        summary = run(manifest)
    assert (summary.rows, summary.failed, summary.exit_code) == (4, 0, 0)
    rows = ds.dataset("out/data", format="ipc").to_table().to_pylist()
    assert [row["row_id"] for row in rows] == WANT[word]
    kept = {
        "data/*.parquet": ("camera", "left"),
        "folder: photos": ("folder", "a"),
        "webdataset": ("json.caption", "a cat"),
    }
    if word in kept:
        column, value = kept[word]
        assert {row[column] for row in rows} == {value}


def test_every_example_is_known() -> None:
    """The two of the hub run in tests/data/test_forms.py, against a hub on this machine."""
    ours = [example for example in EXAMPLES if any(word in example for word in WANT) and "hf://" not in example]
    assert len(EXAMPLES) == len(ours) + 2 == 8
