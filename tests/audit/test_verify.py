"""Verify: a job that is in order passes, each planted fault is found and named, and what it advises mends it."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from photon.audit.positions import Positions, Stretch
from photon.audit.repeats import IdDigests
from photon.audit.verify import verify
from photon.cli import app
from photon.data.unit import Unit
from photon.data.writer import FACTS, digest_of
from photon.errors import EngineError, UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.ledger import Ledger
from photon.plan.plan import ENDLESS, Plan, Span
from photon.plan.plan_file import read_plan
from photon.plan.shard import Shard
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat]}, {name: cap, type: caption}]"
OUT, DATA = Path("out"), Path("out/data")
LEDGER = Path("out/ledger/shard-0000-of-0001.jsonl")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows.parquet and what a run made of it, once for all tests."""
    place = tmp_path_factory.mktemp("finished")
    with contextlib.chdir(place):
        write_parquet(Path("rows.parquet"), [None if n in (5, 13) else png() for n in range(14)])
        text = "version: 1\ninput: {parquet: rows.parquet, id: name}\nmodel: {path: photon://null}\n"
        text += f"tasks: {TASKS}\noutput: {{dir: out, chunk_rows: 4}}\nerrors: {{max_failure_rate: 1}}\n"
        Path("m.yaml").write_text(text, encoding="utf-8")
        go(Path("m.yaml"))
    return place


@pytest.fixture
def job(workplace: Path, finished: Path) -> Path:
    """14 rows in chunks of four, of which rows 5 and 13 fail. Its manifest."""
    shutil.copytree(finished, workplace, dirs_exist_ok=True)
    return Path("m.yaml")


def go(path: Path, **how: Any) -> None:
    run(load_manifest(path), engine=ShufflingEngine(), **how)


def forge(number: int, change: Callable[[pa.Table], pa.Table], facts: dict[str, Any] | None = None) -> None:
    """Another part for a chunk, with a ledger that knows no better."""
    path = DATA / f"part-{number:06d}.arrow"
    table = change(pa.ipc.open_file(path).read_all())
    metadata = dict(table.schema.metadata)
    if facts is not None:
        metadata[FACTS] = json.dumps(facts).encode()
    with pa.ipc.new_file(path, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table.replace_schema_metadata(metadata))
    record = Ledger.read(OUT).records[number]
    record = replace(record, bytes=path.stat().st_size, sha256=digest_of(path))
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")


def cell(name: str, row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Replaces one cell."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        values = table[name].to_pylist()
        values[row] = value
        return table.set_column(index, table.schema.field(name), pa.array(values, table.schema.field(name).type))

    return change


def test_in_order(job: Path) -> None:
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.rows, verdict.planned, verdict.parts, verdict.left) == (0, 14, 14, 4, None)
    assert verdict.text() == "out: 14 of 14 rows in 4 parts, in order"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def part(number: int, folder: str = "data") -> Path:
    return OUT / folder / f"part-{number:06d}.arrow"


FAULTS: dict[str, tuple[Callable[[], object], str, str]] = {
    "a part is gone": (lambda: part(1).unlink(), "missing", "out/data/part-000001.arrow is not there"),
    "cut short": (lambda: part(1).write_bytes(part(1).read_bytes()[:-9]), "damaged", "bytes, and"),
    "a bit is wrong": (lambda: flip(part(2)), "damaged", "part-000002.arrow does not have the digest"),
    "two parts change places": (
        lambda: (shutil.move(part(0), "a"), shutil.move(part(2), part(0)), shutil.move("a", part(2))),
        "damaged",
        "part-000000.arrow",
    ),
    "a row is lacking": (
        lambda: forge(0, lambda table: table.slice(0, 3)),
        "rows",
        "has 3 rows, the plan gives it 4 and the ledger 4",
    ),
    "a row too many": (lambda: forge(0, lambda table: pa.concat_tables([table, table.slice(0, 1)])), "rows", "5 rows"),
    "two rows change places": (
        lambda: forge(0, lambda table: table.take([0, 2, 1, 3])),
        "positions",
        "has the row rows.parquet:0:2 where the plan has rows.parquet:0:1",
    ),
    "a row comes twice": (
        lambda: forge(0, lambda table: table.take([0, 1, 1, 3])),
        "positions",
        "has the row rows.parquet:0:1 where the plan has rows.parquet:0:2",
    ),
    "a row of another file": (
        lambda: forge(1, cell("source", 3, {"file": "x.parquet", "row_group": 2, "row": 1})),
        "positions",
        "x.parquet:2:1 where the plan has rows.parquet:2:1",
    ),
    "a row of nowhere": (lambda: forge(1, cell("source", 3, None)), "positions", "has the row  where"),
    "a status": (lambda: forge(0, cell("status", 2, "failed")), "counts", "has 3 rows that are ok"),
    "a code": (lambda: forge(1, cell("error_code", 1, "X")), "counts", "failures {'X': 1}"),
    "another job": (lambda: forge(0, cell("job_id", 2, "elsewhere")), "counts", "of another job, elsewhere"),
    "a column less": (
        lambda: forge(2, lambda table: table.drop_columns(["cap"])),
        "schema",
        "part-000002.arrow has other columns than part-000000.arrow",
    ),
    "no ids": (lambda: forge(2, lambda table: table.drop_columns(["row_id"])), "schema", "lacks the column row_id"),
    "other features": (
        lambda: forge(2, lambda table: table.replace_schema_metadata({"huggingface": "{}"})),
        "schema",
        "the features of datasets",
    ),
    "another chunk's facts": (
        lambda: forge(0, lambda table: table, {"chunk": 2, "generation": 0}),
        "schema",
        "says of itself {'chunk': 2, 'generation': 0}",
    ),
    "no quarantine": (lambda: part(1, "quarantine").unlink(), "quarantine", "is not there, and 1 rows of"),
    "another quarantine": (
        lambda: shutil.copy(part(3, "quarantine"), part(1, "quarantine")),
        "quarantine",
        "does not hold the 1 rows that failed in part-000001.arrow",
    ),
    "a quarantine too many": (
        lambda: shutil.copy(part(3, "quarantine"), part(0, "quarantine")),
        "quarantine",
        "does not hold the 0 rows",
    ),
    "a broken quarantine": (lambda: part(1, "quarantine").write_bytes(b"ARROW1"), "quarantine", "cannot be read"),
    "a chunk of no plan": (
        lambda: shutil.copy(part(0), part(4)),
        "surplus",
        "part-000004.arrow is the part of no chunk",
    ),
    "a chunk's second part": (
        lambda: shutil.copy(part(1), DATA / "part-0000001.arrow"),
        "surplus",
        "part-0000001.arrow is the part of no chunk",
    ),
    "a file of another": (lambda: (DATA / "notes.txt").write_text("x"), "foreign", "notes.txt is not ours"),
    "a temporary file": (
        lambda: (DATA / ".part-000001.arrow.0a1b.tmp").write_text("x"),
        "leftover",
        ".part-000001.arrow.0a1b.tmp was left",
    ),
    "a temporary record": (lambda: (OUT / ".run.json.0a.tmp").write_text("x"), "leftover", ".run.json.0a.tmp was left"),
    "an open part": (
        lambda: ((OUT / "open").mkdir(exist_ok=True), shutil.copy(part(1), part(1, "open"))),
        "leftover",
        "open/part-000001.arrow is of a chunk that is committed",
    ),
}


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault: str) -> None:
    plant, kind, message = FAULTS[fault]
    plant()
    verdict = verify(OUT)
    assert verdict.exit_code == 5
    assert kind in verdict.found.counts
    assert [found for found in verdict.found.shown if found.kind == kind and message in found.message]
    assert verdict.text().startswith("out: 14 of 14 rows in 4 parts, NOT in order\n")


@pytest.mark.parametrize(
    "fault",
    ["a part is gone", "a bit is wrong", "two rows change places", "a column less", "no quarantine", "another job"],
)
def test_the_advice_mends_it(job: Path, fault: str) -> None:
    """Remove the part and run again."""
    before = {path.name: path.read_bytes() for path in DATA.iterdir()}
    FAULTS[fault][0]()
    for found in verify(OUT).found.shown:
        assert found.kind in ("missing", "damaged", "schema", "positions", "counts", "quarantine")
        for number in range(4):
            if part(number).name in found.message.split(" has other")[0]:
                part(number).unlink(missing_ok=True)
    go(job)
    assert verify(OUT).text() == "out: 14 of 14 rows in 4 parts, in order"
    changed = [name for name, data in before.items() if (DATA / name).read_bytes() != data]
    assert len(changed) == 1, "as it was, but for its generation; the others were left alone"


def test_repeated_ids_are_told_and_no_fault(manifest_file: Write) -> None:
    names = ["a", "b", "a", "c", "d", "b", "a", "e"]
    write_parquet(Path("rows.parquet"), [png()] * 8, name=names)
    go(manifest_file(tasks=TASKS))
    verdict = verify(OUT)
    assert verdict.exit_code == 0
    assert (verdict.repeated.ids, verdict.repeated.rows, verdict.repeated.shown) == (2, 5, (("a", 3), ("b", 2)))
    assert "2 row ids come more than once, on 5 rows: 'a' 3 times, 'b' 2 times" in verdict.text()


def test_digests_find_what_a_counter_finds() -> None:
    ids = [f"row{n * n % 977}" for n in range(5000)]
    digests = IdDigests(10)
    for start in range(0, len(ids), 300):
        digests.add(ids[start : start + 300])
    counts = {name: ids.count(name) for name in set(ids)}
    repeated = digests.repeated([ids])
    assert repeated.ids == sum(count > 1 for count in counts.values())
    assert repeated.rows == sum(count for count in counts.values() if count > 1)
    assert len(repeated.shown) == 5
    assert all(counts[name] == count for name, count in repeated.shown)


def test_a_job_that_is_not_finished(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 14)
    path = manifest_file(tasks=TASKS)
    with pytest.raises(UsageError, match="there is no folder out"):
        verify(OUT)
    with pytest.raises(EngineError):
        run(load_manifest(path), engine=ShufflingEngine(window=1, stop_after=19, error=EngineError("gone")))
    (DATA / ".part-000003.arrow.0a1b.tmp").write_text("x")
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.rows, verdict.left) == (75, 8, "2 of 4 chunks are still to do")
    assert verdict.left_behind.counts == {"leftover": 1}, "the part with the ninth row is no leftover"
    flip(part(0))
    assert verify(OUT).exit_code == 5, "what is wrong counts first"
    flip(part(0))
    go(path)
    assert verify(OUT).text() == "out: 14 of 14 rows in 4 parts, in order"


def test_a_part_that_could_not_be_recorded(job: Path) -> None:
    """As a kill leaves it, between the part's name and its record."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines(keepends=True)
    LEDGER.write_text("".join(lines[:-1]), encoding="utf-8")
    number = json.loads(lines[-1])["chunk"]
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.left_behind.counts) == (75, {"unrecorded": 1})
    before = part(number).read_bytes()
    go(job)
    assert verify(OUT).exit_code == 0
    assert part(number).read_bytes() == before, "it is taken over"


def test_a_retry_that_could_not_be_recorded(job: Path) -> None:
    """The newer part has the size of the older one, whose record is still there."""
    older = LEDGER.read_bytes()
    go(job, retry=[])
    LEDGER.write_bytes(older)
    assert set(verify(OUT).found.counts) == {"damaged"}
    go(job, retry=[])
    assert verify(OUT).exit_code == 0


def test_a_part_that_was_lost_after_a_retry(job: Path) -> None:
    """Done again it is newer than both: else the older record, of the lost one, would count."""
    go(job, retry=[])
    part(1).unlink()
    go(job)
    assert verify(OUT).exit_code == 0
    assert Ledger.read(OUT).records[1].generation == 2


def test_shards_growth_and_folders(manifest_file: Write) -> None:
    """Positions over several files, row groups that a chunk ends within, a grown input, pictures in folders."""
    for name, rows in (("b.parquet", 7), ("c.parquet", 5)):
        write_parquet(Path(name), [png()] * rows)
    path = manifest_file(tasks=TASKS, input="{parquet: '?.parquet'}")
    go(path)
    write_parquet(Path("a.parquet"), [png()] * 4)
    go(path)
    for number in range(3):
        go(path, shard=Shard(number, 3))
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.rows) == (0, 16)
    shutil.rmtree(OUT)
    for name in ("p/2.png", "p/10.png", "p/deep/x.png", b"p/\xff.png".decode("utf-8", "surrogateescape")):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(png())
    path = manifest_file(tasks=TASKS, input="{folder: p}", output="{dir: out, chunk_rows: 3}")
    go(path)
    Path("p/1.png").write_bytes(png())
    go(path)
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.rows, verdict.parts) == (0, 5, 3)


@pytest.mark.parametrize("pictures", [6, 7])
def test_an_input_without_a_known_end(manifest_file: Write, pictures: int) -> None:
    """Its last chunk is short, or followed by a record of the end."""
    for n in range(pictures):
        Path(f"p/{n}.png").parent.mkdir(exist_ok=True)
        Path(f"p/{n}.png").write_bytes(png())
    path = manifest_file(
        tasks=TASKS, input="{hub: imagefolder, options: {data_dir: p}}", output="{dir: out, chunk_rows: 3}"
    )
    with pytest.raises(EngineError):
        run(load_manifest(path), engine=ShufflingEngine(window=1, stop_after=9, error=EngineError("gone")))
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.planned, verdict.left) == (75, None, "the end of its input has not been reached")
    go(path)
    verdict = verify(OUT)
    assert (verdict.exit_code, verdict.rows, verdict.planned, verdict.left) == (0, pictures, pictures, None)
    forge(1, lambda table: table.slice(0, 2))
    assert "has 2 rows, the plan gives it 3" in verify(OUT).text(), "only the last chunk may be short"


def test_positions_of_an_input_without_a_known_end() -> None:
    plan = Plan("id", 10, "stream", {}, [Unit("a/train", None)], [Span(0, 0, ENDLESS)])
    assert list(Positions(plan).of(plan.chunk(3), 7)) == [Stretch("a/train", 0, 30, 7)]


def test_positions_are_the_rows_of_the_source(manifest_file: Write) -> None:
    """Against what the source itself says of every row."""
    from photon.job.planning import open_plan
    from photon.job.sources import open_source

    for name, rows in (("a.parquet", 10), ("b.parquet", 1), ("c.parquet", 8)):
        write_parquet(Path(name), [png()] * rows)
    manifest = load_manifest(manifest_file(tasks=TASKS, input="{parquet: '?.parquet'}"))
    planned = open_plan(OUT, manifest, open_source(manifest))
    OUT.mkdir()
    planned.freeze(OUT, manifest, 4)
    plan = read_plan(OUT)
    assert plan is not None
    positions = Positions(plan)
    told = [
        (stretch.file, stretch.group, stretch.first + n)
        for chunk in map(plan.chunk, range(plan.chunks))
        for stretch in positions.of(chunk, chunk.rows)
        for n in range(stretch.rows)
    ]
    assert told == [(row.ref.file, row.ref.row_group, row.ref.row) for row in planned.source.rows()]
    assert [plan.start_of(number) for number in range(plan.chunks + 1)] == [
        *(plan.chunk(number).place for number in range(plan.chunks)),
        19,
    ]


@pytest.mark.usefixtures("job")
def test_command_line() -> None:
    done = CliRunner().invoke(app, ["verify", "out", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["in_order"]) == (0, True)
    part(1).unlink()
    done = CliRunner().invoke(app, ["verify", "out", "--json", "--quiet"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["exit_code"], told["findings"]["counts"]) == (5, 5, {"missing": 1})
    assert "missing: 1; run again: its rows are done again\n  out/data/part-000001.arrow is not there" in done.stderr
    assert CliRunner().invoke(app, ["verify", "nowhere"]).exit_code == 2
