"""docs/jobs.md: its example of a join gives each row of the source its own answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from photon.audit.prepare import prepare
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

PAGE = (Path(__file__).parents[2] / "docs/jobs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("limit", [None, 11])
def test_joining_results_with_their_source(manifest_file: Callable[..., Path], limit: int | None) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    Path("data").mkdir()
    for name, rows in (("a", 8), ("b", 6)):
        write_parquet(Path(f"data/{name}.parquet"), [png()] * rows, name=[f"{name}{n}" for n in range(rows)])
    manifest = load_manifest(
        manifest_file(
            input="{parquet: 'data/*.parquet', id: name}",
            tasks="[{name: things, type: detect, objects: [cat]}, {name: cap, type: caption}]",
            output="{dir: outputs/cars, chunk_rows: 4}",
        )
    )
    prepare(manifest if limit is None else manifest.with_limit(limit))
    for shard in (1, 0):  # whatever was done in which order
        run(manifest, engine=ShufflingEngine(), shard=Shard(shard, 2))
    joined: list[pa.Table] = []
    exec(example + "        joined_all.append(joined)\n", {"joined_all": joined})
    found = pa.concat_tables(joined).to_pylist()
    answers = {row["row_id"]: row for row in ds.dataset("outputs/cars/data", format="ipc").to_table().to_pylist()}
    assert len(answers) == (limit or 14)

    def wanted(name: str, task: str) -> Any:
        return answers[name][task] if name in answers else None

    assert [row["name"] for row in found] == [f"a{n}" for n in range(8)] + [f"b{n}" for n in range(6)]
    assert [row["things"] for row in found] == [wanted(row["name"], "things") for row in found]
    assert [row["cap"] for row in found] == [wanted(row["name"], "cap") for row in found]
