"""Plan: what is frozen is what a run works by, no model is loaded, and what is estimated follows from what is known."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from photon.audit import prepare as module
from photon.audit.prepare import prepare
from photon.audit.spread import spread_rows
from photon.cli import app
from photon.data.row import Row, RowRef
from photon.data.unit import Unit
from photon.errors import OutputError, UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.plan.owner import OwnerRecord
from photon.plan.plan import ENDLESS, Plan, Span, spans_of
from photon.plan.plan_file import read_plan
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat, dog]}, {name: cap, type: caption}]"
OUT = Path("out")


@pytest.fixture
def manifest(manifest_file: Write) -> Callable[..., Manifest]:
    return lambda **parts: load_manifest(manifest_file(**{"tasks": TASKS, **parts}))


Make = Callable[..., Manifest]


def test_the_run_works_by_it(manifest: Make) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 14)
    made = prepare(manifest())
    assert (made.rows, made.files, made.chunks, made.chunk_rows) == (14, 1, 4, 4)
    assert (made.requests_per_row, made.requests, made.is_new, made.is_frozen) == (3, 42, True, True)
    frozen = Path("out/plan.json").read_bytes()
    run(manifest(), engine=ShufflingEngine())
    assert Path("out/plan.json").read_bytes() == frozen
    assert not Path("out/plan-0001.json").exists()
    rows = ds.dataset("out/data", format="ipc").to_table().to_pylist()
    assert {row["job_id"] for row in rows} == {made.job_id}
    again = prepare(manifest())
    assert (again.is_new, again.done, again.job_id) == (False, 14, made.job_id)
    assert again.bytes == sum(path.stat().st_size for path in Path("out/data").iterdir())
    assert again.text().endswith("MB of results\nnothing is left to do")


def test_what_stands_in_the_way_of_a_run_does_so_here(manifest: Make) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 14)
    OUT.mkdir()
    Path("out/mine.txt").write_text("x")
    with pytest.raises(OutputError, match="holds a file that is not ours"):
        prepare(manifest())
    Path("out/mine.txt").unlink()
    prepare(manifest())
    write_parquet(Path("rows.parquet"), [png("blue")] * 14)
    with pytest.raises(UsageError, match=r"rows\.parquet changed since the plan was made"):
        prepare(manifest())


def test_chunks_where_the_manifest_leaves_them_open(manifest: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows or, measured, a minute's."""

    class Timed(ShufflingEngine):
        statistics = object()  # type: ignore[assignment]
        closed = False

        def close(self) -> None:
            self.closed = True

    write_parquet(Path("rows.parquet"), [png()] * 14)
    assert prepare(manifest(output="{dir: one}")).chunk_rows == 1000
    engine = Timed()
    monkeypatch.setattr(module, "open_engine", lambda manifest: engine)
    seconds = iter((100.0, 104.0))  # for eight rows
    monkeypatch.setattr("photon.job.measure.time.monotonic", lambda: next(seconds))
    made = prepare(manifest(output="{dir: two}"), measure=True)
    assert made.chunk_rows == 120
    assert made.rate is not None
    assert (made.rate.rows_per_second, made.seconds) == (2.0, 7.0)
    assert engine.closed
    assert "estimate: 0:00:07 for one process at 2.00 images/s (measured on the first rows)" in made.text()


def test_no_model_is_loaded(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 3)
    path = manifest_file(model="{path: photon://shapes}", tasks=TASKS)
    code = "import sys; from photon.manifest.load import load_manifest; from photon.audit.prepare import prepare; "
    code += f"print(prepare(load_manifest({str(path)!r})).tiled_by, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "photon://shapes False\n"


def test_pictures(manifest: Make) -> None:
    """640 x 480 makes 2 x 4 tiles of 378 pixels and one crop of all, 300 x 200 is one crop."""
    pictures = [png(size=(640, 480))] * 3 + [png(size=(300, 200))] * 4 + [png(size=(480, 640)), b"no picture", None]
    write_parquet(Path("rows.parquet"), pictures)
    made = prepare(manifest())
    seen = made.headers
    assert seen.sampled == 10
    assert seen.tilings == {(1, 1): 4, (2, 4): 3, (4, 2): 1}
    assert seen.crops == (4 * 1 + 4 * 9) / 8
    assert seen.sizes == ((300, 200), (640, 480), (480, 640))
    assert seen.codes == {"IMAGE_UNIDENTIFIED": 1, "IMAGE_MISSING": 1}
    assert "  tiles as Moondream 2 cuts them: 1x1 50%, 2x4 38%, 4x2 12%; 5.0 crops to an image\n" in made.text()


def test_a_model_on_this_machine_says_how_it_cuts(manifest: Make) -> None:
    from photon.models.load import SHIPPED, vision_of
    from photon.models.tiling import select_tiling

    write_parquet(Path("rows.parquet"), [png(size=(640, 480))])
    vision = vision_of("photon://shapes")
    assert vision is not None
    assert vision_of("someone/model") is None
    assert SHIPPED.keys() == {"photon://shapes", "photon://tiny"}
    made = prepare(manifest(model="{path: photon://shapes}"))
    assert made.headers.tilings == {select_tiling(480, 640, vision): 1}


def test_time_and_cost(manifest: Make) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 18)
    made = prepare(manifest(), price_per_hour=5.0)
    assert (made.rate, made.seconds, made.cost) == (None, None, None)
    assert "no estimate of time: give --rate, --measure it, or plan again after a first run" in made.text()
    made = prepare(manifest(), rate=0.005, price_per_hour=5.0)
    assert (made.seconds, made.cost) == (3600.0, 5.0)
    assert "estimate: 1:00:00 for one process at 0.01 images/s (--rate), 5.00 at 5 an hour" in made.text()
    for rate in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="a number of images a second above 0"):
            prepare(manifest(), rate=rate)
    run(manifest(), engine=ShufflingEngine(), shard=Shard(0, 2))
    record = json.loads(Path("out/run.json").read_text())
    record["shard"] |= {"new_rows": 8, "seconds": 16.0}
    Path("out/run.json").write_text(json.dumps(record))
    made = prepare(manifest())
    assert made.done == 8
    assert made.seconds == 20.0, "ten rows at half a row a second"
    assert "0.50 images/s (the last run, over 8 rows)" in made.text()
    assert prepare(manifest(), rate=10.0).seconds == 1.0, "what is said counts before what was"


def test_bytes_are_of_the_right_size(manifest: Make) -> None:
    write_parquet(Path("rows.parquet"), [png(size=(n, 30)) for n in range(10, 410)])
    estimated = prepare(manifest(output="{dir: out, chunk_rows: 100}")).bytes
    assert estimated is not None
    run(manifest(output="{dir: out, chunk_rows: 100}"))
    written = sum(path.stat().st_size for path in Path("out/data").iterdir())
    assert written / 3 < estimated < 3 * written


def test_a_grown_input(manifest: Make) -> None:
    write_parquet(Path("b.parquet"), [png()] * 5)
    grown = {"input": "{parquet: '?.parquet'}"}
    job_id = prepare(manifest(**grown)).job_id
    write_parquet(Path("a.parquet"), [png()] * 9)
    owner = OwnerRecord(OUT, Shard(0, 2))
    owner.take()
    made = prepare(manifest(**grown))
    assert (made.rows, made.grown, made.is_frozen) == (14, 9, False)
    assert "9 rows have come to the input since it was planned; they are planned once no process" in made.text()
    assert read_plan(OUT).rows == 5  # type: ignore[union-attr]
    owner.release()
    made = prepare(manifest(**grown))
    assert (made.rows, made.grown, made.is_frozen, made.job_id) == (14, 9, True, job_id)
    assert read_plan(OUT).rows == 14  # type: ignore[union-attr]
    Path("b.parquet").unlink()
    made = prepare(manifest(**grown))
    assert (made.rows, made.grown, made.gone) == (14, 0, 1)
    assert "1 files of the plan are not there any more" in made.text()


def test_an_input_without_a_known_end(manifest: Make) -> None:
    for n in range(5):
        Path(f"p/{n}.png").parent.mkdir(exist_ok=True)
        Path(f"p/{n}.png").write_bytes(png())
    made = prepare(manifest(input="{hub: imagefolder, options: {data_dir: p}}"), rate=2.0)
    assert (made.rows, made.chunks, made.requests, made.bytes, made.seconds) == (None,) * 5
    assert made.headers.sampled == 5
    assert "an unknown number of rows of 1 file in an unknown number of chunks of 4 rows" in made.text()
    assert made.text().endswith(
        "no estimate of time: at 2.00 images/s (--rate), but how many rows there are is not known"
    )


class Counted:
    """A source that notes which rows are read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        assert limit is not None
        for index in range(start, start + limit):
            self.read.append(index)
            yield Row(index, str(index), RowRef("f", 0, index), None, {})


def planned(units: list[Unit], chunk_rows: int = 1000, limit: int | None = None, reader: str = "parquet") -> Plan:
    spans = spans_of(units, reader, limit)  # type: ignore[arg-type]
    return Plan("id", chunk_rows, reader, {}, units, spans)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "count", "least"),
    [
        (planned([Unit("a", (100,) * 100)]), 288, 288),
        (planned([Unit("a", (100,) * 100)], limit=500), 288, 288),
        (planned([Unit(f"{n}", (3,)) for n in range(1000)]), 288, 144),
        (planned([Unit("a", (7,) * 9), Unit("b", (2,)), Unit("c", (50,))], 5), 60, 30),
        (planned([Unit("p", (1,), (), None, "r")] * 5000, reader="folder"), 288, 288),
        (planned([Unit("a", (100,)), Unit("b", (40,))], 16), 140, 140),
        (planned([Unit("a", (100,)), Unit("b", (40,))], 16), 141, 140),
    ],
)
def test_a_sample_is_spread(plan: Plan, count: int, least: int) -> None:
    source = Counted()
    rows = [row.index for row in spread_rows(source, plan, count)]  # type: ignore[arg-type]
    assert rows == source.read == sorted(set(rows))
    total = plan.rows or 0
    assert least <= len(rows) <= count
    assert rows[-1] < total
    gaps = [after - before for before, after in itertools.pairwise([*rows, total])]
    assert max(gaps) <= 12 * total / len(rows) + 1, "no stretch of the input is left out"


def test_what_is_gone_is_not_read() -> None:
    units = [Unit("a", (1000,)), Unit("b", (1000,)), Unit("c", (1000,))]
    rows = [row.index for row in spread_rows(Counted(), planned(units), 120, [units[1]])]  # type: ignore[arg-type]
    assert {row // 1000 for row in rows} == {0, 2}
    few = [Unit("p", (1,), (), None, f"r{n}") for n in range(9)]
    plan = planned(few, 4, reader="folder")
    rows = [row.index for row in spread_rows(Counted(), plan, 120, few[3:5])]  # type: ignore[arg-type]
    assert rows == [0, 1, 2, 5, 6, 7, 8]


def test_large_groups_are_read_from_their_start() -> None:
    heavy = 64 << 20
    plan = planned([Unit("a", (1000,) * 6, (heavy, 10, heavy, heavy, 10, heavy))])
    rows = [row.index for row in spread_rows(Counted(), plan, 120)]  # type: ignore[arg-type]
    starts = [row for before, row in itertools.pairwise([-9, *rows]) if row != before + 1]
    assert {start for start in starts if start // 1000 in (0, 2, 3, 5)} == {0, 2000, 3000, 5000}
    assert any(start % 1000 for start in starts if start // 1000 in (1, 4))


def test_the_first_rows_of_what_has_no_known_end() -> None:
    source = Counted()
    plan = Plan("id", 10, "stream", {}, [Unit("a", None)], [Span(0, 0, ENDLESS)])
    assert len(list(spread_rows(source, plan, 30))) == 30  # type: ignore[arg-type]
    assert source.read == list(range(30))
    plan = Plan("id", 10, "stream", {}, [Unit("a", None)], [Span(0, 0, 7)])
    assert len(list(spread_rows(Counted(), plan, 30))) == 7  # type: ignore[arg-type]


def test_command_line(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 14)
    manifest_file(tasks=TASKS)
    done = CliRunner().invoke(app, ["plan", "m.yaml", "--limit", "10", "--rate", "2", "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["rows"], told["requests"], told["seconds"], told["headers"]["tilings"]) == (10, 30, 5.0, {"1x1": 10})
    assert done.stderr.startswith(
        "out: planned: 10 rows of 1 file in 3 chunks of 4 rows\n30 requests, 3 for each image\n"
    )
    assert CliRunner().invoke(app, ["plan", "m.yaml", "--limit", "5"]).exit_code == 2
