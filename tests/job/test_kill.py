"""SIGKILL at any instant: the next run goes on, and in the end everything is as if nothing had happened."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from photon.plan.ledger import Ledger
from tests.job.inputs import png, write_parquet
from tests.job.zygote import Zygote

ROWS, CHUNK = 90, 4
POINTS = ["before fsync", "after fsync", "after rename", "after folder", "in record", "after record", "after plan"]
MANIFEST = """\
version: 1
input: {{parquet: [a.parquet, b.parquet], id: name}}
model: {{path: photon://null}}
tasks:
  - {{name: things, type: detect, objects: [cat, dog]}}
  - {{name: cap, type: caption}}
output: {{dir: {out}, chunk_rows: {chunk}}}
errors: {{max_failure_rate: 1}}
"""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    """Two files of rows, a broken picture in each, and ``whole``: the results of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("kill")
    for file, numbers in (("a", range(ROWS // 2)), ("b", range(ROWS // 2, ROWS))):
        images = [b"broken" if n % 40 == 7 else png() for n in numbers]
        write_parquet(folder / f"{file}.parquet", images, name=[f"row{n:03}" for n in numbers])
    for out in ("whole", "killed"):
        (folder / f"{out}.yaml").write_text(MANIFEST.format(out=out, chunk=CHUNK))
    assert zygote.run(folder, "run", "whole.yaml")["exit"] == 0
    return folder


@pytest.fixture
def folder(base: Path) -> Iterator[Path]:
    """With ``killed``: the plan of ``whole``, so that both are the same job, and nothing of it done."""
    killed = base / "killed"
    killed.mkdir()
    for path in (base / "whole").iterdir():
        if path.name.startswith(("plan", "units")):
            shutil.copy(path, killed / path.name)
    yield base
    shutil.rmtree(killed)


def digests(folder: Path) -> dict[str, str]:
    data = folder / "data"
    parts = [path for path in data.iterdir() if path.name.startswith("part-")] if data.exists() else []
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in parts}


def committed(folder: Path) -> dict[str, str]:
    """Digests of the parts that the ledger knows."""
    known = {f"part-{number:06}.arrow" for number in Ledger.read(folder).records}
    return {name: digest for name, digest in digests(folder).items() if name in known}


def check_whole(base: Path) -> None:
    killed, whole = base / "killed", base / "whole"
    assert digests(killed) == digests(whole) == committed(killed)
    rows = ds.dataset(killed / "data", format="ipc").to_table(columns=["row_id", "status"]).to_pylist()
    assert [row["row_id"] for row in rows] == [f"row{n:03}" for n in range(ROWS)]
    assert [n for n, row in enumerate(rows) if row["status"] != "ok"] == [7, 47, 87]
    assert not [path for path in killed.rglob("*") if path.name.endswith((".tmp", ".stale"))]
    assert not list((killed / "open").iterdir())
    records = {n: (r.rows, r.ok, r.sha256, r.codes) for n, r in Ledger.read(killed).records.items()}
    assert records == {n: (r.rows, r.ok, r.sha256, r.codes) for n, r in Ledger.read(whole).records.items()}
    assert digests_of_quarantine(killed) == digests_of_quarantine(whole)


def digests_of_quarantine(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "quarantine").iterdir()}


@pytest.mark.parametrize("after", [0, 5])
@pytest.mark.parametrize("point", POINTS[:-1])
def test_between_any_two_steps_of_a_commit(folder: Path, zygote: Zygote, point: str, after: int) -> None:
    """The first commit of the job, and one in its middle."""
    assert zygote.run(folder, "run", "killed.yaml", at=(point, after))["signal"] == 9
    before = committed(folder / "killed")
    assert len(before) == after + (point == "after record")
    assert zygote.run(folder, "run", "killed.yaml")["exit"] == 0
    assert before.items() <= digests(folder / "killed").items()
    check_whole(folder)
    log = (folder / "log.txt").read_text()
    assert ("took over part-" in log) == (point in ("after rename", "after folder", "in record"))
    (folder / "log.txt").unlink()


def test_right_after_the_plan(base: Path, zygote: Zygote) -> None:
    assert zygote.run(base, "run", "killed.yaml", at=("after plan", 0))["signal"] == 9
    job = (base / "killed" / "plan.json").read_bytes()
    assert zygote.run(base, "run", "killed.yaml")["exit"] == 0
    assert (base / "killed" / "plan.json").read_bytes() == job
    assert len(committed(base / "killed")) == len(committed(base / "whole"))
    shutil.rmtree(base / "killed")


@pytest.mark.slow
def test_at_random_instants(folder: Path, zygote: Zygote) -> None:
    """Forty kills, each in a run that goes on where the last one was killed."""
    dice = random.Random(20261130)
    seconds = zygote.run(folder, "run", "killed.yaml", "--fresh")["seconds"]
    shutil.rmtree(folder / "killed")
    kills = landed = 0
    while kills < 40:
        if not (folder / "killed").exists():
            copy_plan(folder)
        before = committed(folder / "killed")
        ended = zygote.run(folder, "run", "killed.yaml", kill_after=dice.uniform(0.0, seconds))
        if ended["signal"] == 9:
            kills += 1
            landed += 0 < len(committed(folder / "killed")) < len(committed(folder / "whole"))
        assert before.items() <= digests(folder / "killed").items(), "a committed part never changes"
        if len(committed(folder / "killed")) == len(committed(folder / "whole")):
            assert zygote.run(folder, "run", "killed.yaml")["exit"] == 0
            check_whole(folder)
            shutil.rmtree(folder / "killed")
    if (folder / "killed").exists():
        assert zygote.run(folder, "run", "killed.yaml")["exit"] == 0
        check_whole(folder)
    else:
        copy_plan(folder)
    assert landed >= 3, "else the kills hit where nothing happens"


def copy_plan(base: Path) -> None:
    (base / "killed").mkdir()
    for path in (base / "whole").iterdir():
        if path.name.startswith(("plan", "units")):
            shutil.copy(path, base / "killed" / path.name)
