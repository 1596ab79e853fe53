"""docs/slurm.md on a real Slurm: its commands as they stand, elements hit in mid-run, and the rows of one process."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.data.pictures import pictures
from tests.job.inputs import write_parquet
from tests.slurm.one_machine import reason_against, slurm, wait_until

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/slurm.md").read_text(encoding="utf-8"), re.DOTALL)
ROWS, CHUNK_ROWS, SHARDS = 1600, 10, 4
MANIFEST = f"""\
version: 1
input: {{parquet: rows.parquet, id: name}}
model: {{path: photon://null}}
tasks: [{{name: things, type: detect, objects: [car, bus]}}, {{name: cap, type: caption}}]
output: {{dir: outputs/cars, chunk_rows: {CHUNK_ROWS}}}
"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(reason_against() is not None, reason=reason_against() or "")]


class Shell:
    """Runs what the guide says, in a folder, as one person's shell: variables stay."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.job = folder, ""
        self.done: list[str] = []
        self._environment = {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}

    def __call__(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", f'{text}\necho "$job" > job.txt'],
            cwd=self.folder,
            env={**self._environment, "job": self.job},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        self.done.append(text)
        self.job = (self.folder / "job.txt").read_text().strip()
        return done.stdout

    def state_of(self, element: int) -> str:
        """As squeue has it, such as RUNNING; empty for one that is not in the queue any more."""
        told = self('squeue --noheader --array --jobs "$job" --format="%K %T"')
        return dict(line.split() for line in told.splitlines()).get(str(element), "")

    def status(self, element: int) -> dict[str, object]:
        path = self.folder / f"outputs/cars/shards/{element:04d}-of-{SHARDS:04d}.status.json"
        found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def pid(self, element: int) -> int:
        return int(str(self.status(element)["pid"]))

    def committed(self, element: int) -> int:
        path = self.folder / f"outputs/cars/ledger/shard-{element:04d}-of-{SHARDS:04d}.jsonl"
        return sum('"chunk"' in line for line in path.read_text().splitlines()) if path.exists() else 0

    def queue_is_empty(self) -> bool:
        return not self("squeue --noheader")


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        with slurm(folder) as environment:
            yield environment
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def shell(workplace: Path, cluster: dict[str, str]) -> Shell:
    made = pictures(16)
    names = [f"row{n}" for n in range(ROWS)]
    write_parquet(workplace / "rows.parquet", [made[n % 16] for n in range(ROWS)], name=names)
    (workplace / "cars.yaml").write_text(MANIFEST)
    return Shell(workplace, cluster)


def block(word: str) -> str:
    (found,) = (text for text in BLOCKS if word in text)
    return str(found)


def hold(shell: Shell, *elements: int) -> dict[int, int]:
    """Holds each of them still once it is in mid-run, as it might be done too soon. How many chunks it has by then."""
    held: dict[int, int] = {}

    def look() -> bool:
        for element in elements:
            if element not in held and shell.committed(element) >= 3:
                os.kill(shell.pid(element), signal.SIGSTOP)
                held[element] = shell.committed(element)
        return len(held) == len(elements)

    wait_until(look, f"elements {elements} at work", every=0.01)
    return held


def hit(shell: Shell, element: int, word: str) -> None:
    """Does what the guide says to an element that is held, and lets it go."""
    shell(block(word))
    with suppress(ProcessLookupError):
        os.kill(shell.pid(element), signal.SIGCONT)


def start_again(shell: Shell, element: int) -> None:
    (line,) = (line for line in block("StartTime=now").splitlines() if f"_{element}" in line)
    wait_until(lambda: shell.state_of(element) == "PENDING", f"element {element} back in the queue")
    settled = time.time() + 2  # in the very second of its end Slurm refuses a job's new start: "credential revoked"
    wait_until(lambda: time.time() >= settled, "the clock")
    shell(line)


def rows_of(folder: Path) -> list[str]:
    found: list[str] = []
    for part in sorted(folder.glob("part-*.arrow")):
        found += pa.ipc.open_file(part).read_all()["row_id"].to_pylist()
    return found


def parts_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def single(shell: Shell) -> dict[str, bytes]:
    """The parts of one process that works by the same plan."""
    (shell.folder / "outputs/single").mkdir()
    shell("cp outputs/cars/plan*.json outputs/cars/units-*.jsonl outputs/single")
    shell("photon-batch run cars.yaml --set output.dir=outputs/single --quiet --no-progress")
    return parts_of(shell.folder / "outputs/single/data")


def test_the_guide(shell: Shell) -> None:
    chunks = ROWS // CHUNK_ROWS // SHARDS
    shell(block("slurm script"))
    hit_at = hold(shell, 1)
    hit(shell, 1, "scontrol requeue")
    hit_at |= hold(shell, 2, 3)
    assert "2/4" in shell(block("squeue"))
    hit(shell, 2, 'scancel "')
    hit(shell, 3, "USR1")
    start_again(shell, 1)
    start_again(shell, 3)
    wait_until(shell.queue_is_empty, "the end of the array")
    assert {n: shell.status(n)["state"] for n in range(4)} == {
        0: "finished", 1: "finished", 2: "preempted", 3: "finished",
    }  # fmt: skip
    logs = {n: (shell.folder / f"cars-{shell.job}_{n}.log").read_text() for n in range(4)}
    for element, name in ((1, "SIGTERM"), (2, "SIGTERM"), (3, "SIGUSR1")):
        assert 3 <= hit_at[element] < chunks
        assert f"{name}: finishing what is in flight" in logs[element]
        assert "stopped before the end; the same command goes on" in logs[element]
    for element in (1, 3):
        assert "of them in this run, the others before" in logs[element], "its second life in the same log"
        assert shell.status(element)["new_rows"] <= ROWS // SHARDS - hit_at[element] * CHUNK_ROWS

    assert shell("photon-batch slurm retry outputs/cars --tasks 4") == "--array=2\n"
    shell(block("slurm retry"))
    wait_until(shell.queue_is_empty, "the end of the resubmitted element")
    assert "nothing to submit" in shell("photon-batch slurm retry outputs/cars --tasks 4 2>&1")
    shell(block("verify"))
    assert rows_of(shell.folder / "outputs/cars/data") == [f"row{n}" for n in range(ROWS)]
    assert parts_of(shell.folder / "outputs/cars/data") == single(shell)
    assert not [text for text in BLOCKS if text not in (*shell.done, block("node.sh"), block("StartTime=now"))]


def test_one_node_and_offsets(shell: Shell) -> None:
    """Two processes of one job, and what they leave by two arrays of one element."""
    shutil.copy(ROOT / "jobs/slurm/node.sh", shell.folder)
    shell("photon-batch slurm script cars.yaml --tasks 2 --max-array-size 1 --out two.sh")
    data = shell.folder / "outputs/cars/data"
    shell(block("node.sh"))
    wait_until(shell.queue_is_empty, "the end of the job")
    whole = parts_of(data)
    assert rows_of(data) == [f"row{n}" for n in range(ROWS)]
    ledgers = sorted(path.name for path in (shell.folder / "outputs/cars/ledger").iterdir())
    assert ledgers == ["shard-0000-of-0002.jsonl", "shard-0001-of-0002.jsonl"]
    for name in ("part-000003.arrow", "part-000100.arrow"):
        (data / name).unlink()
    wanted = shell("photon-batch slurm retry outputs/cars --tasks 2 --max-array-size 1")
    assert wanted == "--array=0\n--export=ALL,PHOTON_BATCH_SHARD_OFFSET=1 --array=0\n"
    resubmit = block("slurm retry").replace("--tasks 4", "--tasks 2 --max-array-size 1").replace("cars.sh", "two.sh")
    shell(resubmit)
    wait_until(shell.queue_is_empty, "the end of both arrays")
    assert parts_of(data).keys() == whole.keys()
    assert rows_of(data) == [f"row{n}" for n in range(ROWS)]
