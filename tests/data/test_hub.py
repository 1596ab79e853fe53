"""Hub ids, against a hub on this machine; and what is refused before any hub is asked."""

import io
import json
import os
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from photon.data.hub import HubSource
from photon.errors import InputError, UsageError

from .fake_hub import Hub, serve
from .pictures import digest, pictures

COUNT, CORRUPT = 11, 8
PICTURES = pictures(COUNT, CORRUPT)


def parquet(first: int, last: int) -> bytes:
    cells = [{"bytes": data, "path": None} for data in PICTURES[first:last]]
    file = io.BytesIO()
    pq.write_table(pa.table({"image": cells, "n": list(range(first, last))}), file, row_group_size=4)
    return file.getvalue()


SCRIPT = """
    import hashlib, json, sys
    from photon.data.hub import HubSource
    from photon.errors import PhotonError

    def read(name, revision, **more):
        try:
            source = HubSource(name, split="train", revision=revision, image="image", **more)
            rows = list(source.rows())
        except PhotonError as error:
            return [type(error).__name__, str(error)]
        return [source.count(), [[r.row_id, hashlib.sha256(r.image.source).hexdigest()] for r in rows]]

    out = {
        "parquet": read("org/parquet", "v1", id="n"),
        "positions": read("org/parquet", "0123456789abcdef0123456789abcdef01234567"),
        "folder": read("org/folder", "v1"),
        "revision": read("org/parquet", "v2"),
        "repository": read("org/none", "v1"),
        "config": read("org/parquet", "v1", config="german"),
    }
    json.dump(out, sys.stdout)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """One process reads it all: huggingface_hub takes its endpoint at import, and takes seconds to import."""
    parts = {"train-00000-of-00002": (0, 6), "train-00001-of-00002": (6, COUNT), "test-00000-of-00001": (0, 1)}
    files = {f"data/{name}.parquet": parquet(*rows) for name, rows in parts.items()}
    folder = {f"train/{n:03d}.png": data for n, data in enumerate(PICTURES)}
    home = tmp_path_factory.mktemp("hf")
    with serve(Hub({"org/parquet": files, "org/folder": folder})) as hub:
        hub_here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT)],
            env={**os.environ, **hub_here},
            capture_output=True,
            timeout=120,
        )
    assert run.returncode == 0, run.stderr.decode()
    return {**json.loads(run.stdout), "requests": hub.requests, "sha": hub.sha}


def test_a_parquet_repository_with_a_corrupt_row(answers):
    assert answers["parquet"] == [COUNT, [[str(n), digest(data)] for n, data in enumerate(PICTURES)]]


def test_positions_name_the_commit(answers):
    place = f"hf://datasets/org/parquet@{answers['sha']}/data/train-0000{{}}-of-00002.parquet:{{}}:{{}}"
    want = [place.format(n // 6, n % 6 // 4, n % 6 % 4) for n in range(COUNT)]
    assert [row_id for row_id, _ in answers["positions"][1]] == want


def test_a_folder_of_images(answers):
    rows = [[f"org/folder@v1/train:0:{n}", digest(data)] for n, data in enumerate(PICTURES)]
    assert answers["folder"] == [None, rows]


def test_what_is_not_there(answers):
    kind, message = answers["revision"]
    assert kind == "InputError"
    assert "Revision 'v2' doesn't exist" in message
    assert "check id, revision and network" in message
    kind, message = answers["repository"]
    assert kind == "InputError"
    assert "org/none" in message
    kind, message = answers["config"]
    assert kind == "UsageError"
    assert "german" in message


def test_nothing_else_was_asked_for(answers):
    assert not [r for r in answers["requests"] if "test-00000" in r]


def test_a_hub_id_needs_a_revision():
    with pytest.raises(UsageError, match=r"'org/name' is not a folder here.*needs a revision"):
        HubSource("org/name", split="train", image="image")
    with pytest.raises(UsageError, match=r"no folder './data'"):
        HubSource("./data", split="train", image="image")
    with pytest.raises(UsageError, match="has no revision"):
        HubSource("imagefolder", split="train", revision="v1", image="image")


def test_no_code_from_the_hub():
    with pytest.raises(UsageError, match="trust_remote_code"):
        HubSource("org/name", split="train", revision="v1", options={"trust_remote_code": True}, image="image")


def test_an_unreachable_hub(monkeypatch):
    import datasets.load

    def unreachable(*args: object, **kwargs: object) -> None:
        raise ConnectionError("Couldn't reach 'org/name' on the Hub")

    monkeypatch.setattr(datasets, "load_dataset_builder", unreachable)
    with pytest.raises(InputError, match=r"Couldn't reach 'org/name'.*check id, revision and network"):
        HubSource("org/name", split="train", revision="v1", image="image")


def test_local_requests_that_are_wrong(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"image": "a.png", "n": 1}\n')
    files = {"data_files": str(tmp_path / "a.jsonl")}
    with pytest.raises(UsageError, match="Bad split: test"):
        HubSource("json", split="test", options=files, image="image")
    with pytest.raises(UsageError, match="no column 'img'"):
        HubSource("json", split="train", options=files, image="img")
    with pytest.raises(UsageError, match="cannot load 'json' as asked"):
        HubSource("json", split="train", options={"data_files": str(tmp_path / "b.jsonl")}, image="image")
    with pytest.raises(UsageError, match="cannot load 'json' as asked"):
        HubSource("json", split="train", options={**files, "no_such_option": 1}, image="image")
    (tmp_path / "a.jsonl").write_text('{"image": "a.png", "n": ')
    with pytest.raises(InputError, match="cannot read json/train"):
        HubSource("json", split="train", options=files, image="image")
