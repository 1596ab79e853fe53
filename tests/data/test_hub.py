"""Hub ids, against a hub on this machine; and what is refused before any hub is asked."""

import io
import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from photon.data.hf import pin
from photon.data.hub import HubSource
from photon.data.parquet import ParquetSource
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


BUSY = """
    import hashlib, json, sys
    from photon.data.hub import HubSource
    from photon.data.parquet import ParquetSource
    from photon.errors import PhotonError

    def read(make):
        try:
            return [[r.row_id, hashlib.sha256(r.image.source).hexdigest()] for r in make().rows()]
        except PhotonError as error:
            return [type(error).__name__, str(error)]

    by_url = lambda tail: lambda: ParquetSource([f"hf://datasets/org/parquet{tail}"], image="image")
    out = {
        "one": read(by_url("@0123456789abcdef0123456789abcdef01234567/data/train-1.parquet")),
        "url": read(by_url("@v1/data/train-*.parquet")),
        "hub": read(lambda: HubSource("org/parquet", split="train", revision="v1", image="image")),
        "folder": read(lambda: HubSource("org/folder", split="train", revision="v1", image="image")),
        "revision": read(by_url("@v2/data/train-*.parquet")),
        "hopeless": read(by_url("@v9/data/train-*.parquet")),
        "unpinned": read(by_url("/data/train-*.parquet")),
        "nothing": read(by_url("@v1/data/validation-*.parquet")),
    }
    json.dump(out, sys.stdout)
"""


def read_here(hub, script, home):
    hub_here = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env={**os.environ, **hub_here},
        capture_output=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr.decode()
    return json.loads(run.stdout)


@pytest.mark.slow
def test_a_busy_hub_is_asked_again_after_the_time_that_it_names(tmp_path):
    """Every kind of call is refused once or twice, and all rows come all the same."""
    parts = {f"data/train-{n}.parquet": parquet(*rows) for n, rows in enumerate([(0, 6), (6, COUNT)])}
    folder = {f"train/{n:03d}.png": data for n, data in enumerate(PICTURES[:3])}
    hub = Hub({"org/parquet": parts, "org/folder": folder})
    hub.busy = {
        "revision": [(429, {"Retry-After": "2"}), (503, {})],
        "tree": [(503, {"Retry-After": "1"}), (500, {})],
        "data/train-0.parquet": [(502, {}), (429, {"Retry-After": "1"})],
        "train/001.png": [(503, {"Retry-After": "1"})],
        "v9": [(429, {"Retry-After": "3600"})],
    }
    with serve(hub):
        found = read_here(hub, BUSY, tmp_path)
    place = f"hf://datasets/org/parquet@{hub.sha}/data/train-{{}}.parquet:{{}}:{{}}"
    want = [[place.format(n // 6, n % 6 // 4, n % 6 % 4), digest(data)] for n, data in enumerate(PICTURES)]
    assert found["one"] == want[6:]
    assert found["url"] == want
    assert found["hub"] == want
    assert found["folder"] == [[f"org/folder@v1/train:0:{n}", digest(data)] for n, data in enumerate(PICTURES[:3])]
    assert found["revision"][0] == found["hopeless"][0] == "InputError"
    assert "429" in found["hopeless"][1]
    assert found["unpinned"][0] == found["nothing"][0] == "UsageError"
    assert (
        "write hf://datasets/org/parquet@REVISION/data/train-*.parquet with a commit sha or a tag"
        in (found["unpinned"][1])
    )
    assert "nothing matches" in found["nothing"][1]
    assert not any(hub.busy.values()), "every refusal was met"
    refused = [(n, when, path) for n, (when, path, status) in enumerate(hub.answered) if status == 429]
    assert len(refused) == 3
    assert len([path for _, path, _ in hub.answered if "v9" in path]) == 1, "an hour is more than it is worth"
    for n, when, path in refused:
        if "v9" in path:
            continue
        again = next(later for later, other, _ in hub.answered[n + 1 :] if other == path)
        assert again - when >= (2 if "revision" in path else 1)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """One process reads it all: huggingface_hub takes its endpoint at import, and takes seconds to import."""
    parts = {"train-00000-of-00002": (0, 6), "train-00001-of-00002": (6, COUNT), "test-00000-of-00001": (0, 1)}
    files = {f"data/{name}.parquet": parquet(*rows) for name, rows in parts.items()}
    folder = {f"train/{n:03d}.png": data for n, data in enumerate(PICTURES)}
    home = tmp_path_factory.mktemp("hf")
    with serve(Hub({"org/parquet": files, "org/folder": folder})) as hub:
        found = read_here(hub, SCRIPT, home)
    return {**found, "requests": hub.requests, "sha": hub.sha}


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


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("hf://datasets/org/cars/a.parquet", r"write hf://datasets/org/cars@REVISION/a\.parquet with a commit"),
        ("hf://org/model/a.parquet", r"write hf://org/model@REVISION/a\.parquet with a commit"),
        ("hf://datasets/org", "is not a place on the hub: write hf://datasets/OWNER/NAME@REVISION/PATH"),
    ],
)
def test_a_url_of_the_hub_needs_a_revision(url, message):
    with pytest.raises(UsageError, match=message):
        ParquetSource([url], image="image")


def test_a_commit_is_not_looked_up(monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", None)
    url = f"hf://datasets/org/cars@{'0a' * 20}/data/*.parquet"
    assert pin(url) == url


def test_a_revision_becomes_its_commit(monkeypatch):
    asked = []

    def repo_info(self, repo, *, repo_type, revision):
        asked.append((repo, repo_type, revision))
        return SimpleNamespace(sha="f" * 40)

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", repo_info)
    assert pin("hf://datasets/org/cars@v1/a.parquet") == f"hf://datasets/org/cars@{'f' * 40}/a.parquet"
    assert pin("hf://datasets/org/cars@refs/convert/parquet/x/*.parquet").endswith(f"@{'f' * 40}/x/*.parquet")
    assert pin("hf://datasets/org/cars@refs%2Fpr%2F1/a.parquet").endswith(f"@{'f' * 40}/a.parquet")
    assert asked == [("org/cars", "dataset", name) for name in ("v1", "refs/convert/parquet", "refs/pr/1")]
