"""Any layout of files and row groups, any shard counts and ends of runs: their union is the input, each row once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from photon.errors import InputError
from photon.job.run import run
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Ledger
from photon.plan.plan_file import read_plan
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png

LAYOUT = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=4)
#: Runs one after the other: (shards, those that run, answers until the engine goes down or None).
HISTORY = st.lists(
    st.tuples(st.integers(1, 5), st.sets(st.integers(0, 4)), st.one_of(st.none(), st.integers(0, 30))), max_size=4
)


def write(folder: Path, layout: list[list[int]]) -> list[str]:
    """A file for each list, with row groups of those sizes; the ids of all rows, in order."""
    ids: list[str] = []
    for number, groups in enumerate(layout):
        schema = pa.schema({"image": pa.binary(), "name": pa.string()})
        with pq.ParquetWriter(folder / f"{number}.parquet", schema) as writer:
            for size in groups:
                names = [f"r{len(ids) + n:03}" for n in range(size)]
                ids += names
                writer.write_table(pa.table({"image": [png()] * size, "name": names}, schema=schema))
    return ids


@settings(max_examples=12, deadline=None)
@given(LAYOUT, st.integers(1, 7), HISTORY, st.integers(1, 5))
def test_the_union_of_all_runs_is_the_input(
    layout: list[list[int]], chunk_rows: int, history: list[tuple[int, set[int], int | None]], last: int
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        ids = write(folder, layout)
        manifest = Manifest.model_validate(
            {
                "version": 1,
                "input": {"parquet": [str(folder / "*.parquet")], "id": "name"},
                "model": {"path": "photon://null"},
                "tasks": [{"name": "spots", "type": "point", "objects": ["a", "b"]}],
                "output": {"dir": str(folder / "out"), "chunk_rows": chunk_rows},
            }
        )
        for count, numbers, answers in history:
            for number in sorted(n for n in numbers if n < count):
                # Not an engine's crash: the rows of two of those are asked alone, and this engine, which asks for rows
                # on the thread that it answers on, cannot wait for others.
                engine = ShufflingEngine(window=3, stop_after=answers, error=InputError("gone"))
                try:
                    run(manifest, shard=Shard(number, count), engine=engine)
                except InputError:
                    continue
        for number in range(last):
            assert run(manifest, shard=Shard(number, last), engine=ShufflingEngine()).exit_code == 0
        rows = ds.dataset(folder / "out/data", format="ipc").to_table().to_pylist()
        assert sorted(row["row_id"] for row in rows) == ids
        assert all(row["status"] == "ok" for row in rows)
        plan = read_plan(folder / "out")
        assert plan is not None
        chunks = [plan.chunk(number) for number in range(plan.chunks)]
        assert [chunk.place for chunk in chunks] == [sum(c.rows for c in chunks[:n]) for n in range(len(chunks))]
        assert sum(chunk.rows for chunk in chunks) == plan.rows == len(ids)
        assert {n: record.rows for n, record in Ledger.read(folder / "out").records.items()} == {
            chunk.number: chunk.rows for chunk in chunks
        }
    finally:
        shutil.rmtree(folder)


@given(st.integers(0, 200), st.integers(1, 40))
def test_shards_share_all_chunks_out(chunks: int, count: int) -> None:
    shares = [Shard(number, count).of(chunks) for number in range(count)]
    assert [number for share in shares for number in share] == list(range(chunks))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
