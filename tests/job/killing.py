"""A job to be killed, what it has to be in the end, and kills at random instants."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path

import pyarrow.dataset as ds

from photon.plan.ledger import Ledger
from tests.job.inputs import png, write_parquet
from tests.job.zygote import Zygote

ROWS, CHUNK = 90, 4
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


def make_base(folder: Path, zygote: Zygote) -> None:
    """Two files of rows, a broken picture in each, and ``whole``: the results of a run that nobody disturbed."""
    for file, numbers in (("a", range(ROWS // 2)), ("b", range(ROWS // 2, ROWS))):
        images = [b"broken" if n % 40 == 7 else png() for n in numbers]
        write_parquet(folder / f"{file}.parquet", images, name=[f"row{n:03}" for n in numbers])
    for out in ("whole", "killed"):
        (folder / f"{out}.yaml").write_text(MANIFEST.format(out=out, chunk=CHUNK))
    assert zygote.run(folder, "run", "whole.yaml")["exit"] == 0


def copy_plan(base: Path) -> None:
    """``killed``: the plan of ``whole``, so that both are the same job, and nothing of it done."""
    (base / "killed").mkdir()
    for path in (base / "whole").iterdir():
        if path.name.startswith(("plan", "units")):
            shutil.copy(path, base / "killed" / path.name)


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


def kill_at_random(base: Path, zygote: Zygote, kills: int, dice: random.Random) -> dict[str, int]:
    """So many kills, each in a run that goes on where the last one was killed; each job that comes to its end is held
    against ``whole``. How many kills fell between the first commit and the last, and how many jobs there were."""
    seconds = zygote.run(base, "run", "killed.yaml")["seconds"]
    shutil.rmtree(base / "killed")
    told = {"kills": 0, "in mid-job": 0, "jobs": 0}
    while told["kills"] < kills or (base / "killed").exists():
        if not (base / "killed").exists():
            copy_plan(base)
        before = committed(base / "killed")
        left = told["kills"] < kills
        ended = zygote.run(base, "run", "killed.yaml", kill_after=dice.uniform(0.0, seconds) if left else None)
        told["kills"] += ended["signal"] == 9
        done = len(committed(base / "killed")), len(committed(base / "whole"))
        told["in mid-job"] += ended["signal"] == 9 and 0 < done[0] < done[1]
        assert before.items() <= digests(base / "killed").items(), "a committed part never changes"
        if done[0] == done[1]:
            assert zygote.run(base, "run", "killed.yaml")["exit"] == 0
            check_whole(base)
            shutil.rmtree(base / "killed")
            told["jobs"] += 1
    return told
