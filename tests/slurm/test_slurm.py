"""The sbatch script and the elements to submit again, without a Slurm: what bash makes of the one, what is missing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from photon.audit.slurm import Script, arrays, missing_shards
from photon.cli import app
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.plan.shard import Shard, shard_from
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]
JOBS = Path(__file__).parents[2] / "jobs/slurm"
TASKS = "[{name: cap, type: caption}]"


def directives(text: str) -> list[str]:
    """What sbatch reads: the #SBATCH lines before the first that is no comment."""
    head = text.split("\nexport ")[0]
    return [line.removeprefix("#SBATCH ") for line in head.splitlines() if line.startswith("#SBATCH ")]


def test_what_sbatch_reads() -> None:
    plain = ["--requeue", "--open-mode=append", "--output=%x-%A_%a.log", "--signal=USR1@120"]
    assert directives(Script("cars.yaml", 4).text()) == ["--job-name=cars", "--array=0-3", *plain]
    full = Script("a/my cars.yaml", 1, 1, time="12:00:00", partition="gpu", gpus=1, cpus=8).text()
    wanted = ["--time=12:00:00", "--partition=gpu", "--gpus=1", "--cpus-per-task=8"]
    assert directives(full) == ["--job-name=my-cars", "--array=0%1", *plain, *wanted]
    assert "photon-batch run 'a/my cars.yaml' " in full


@pytest.mark.parametrize(
    ("shards", "size", "options"),
    [
        ([], 1001, []),
        (range(4), 1001, ["--array=0-3%2"]),
        ([3, 7, 8, 9], 1001, ["--array=3,7-9%2"]),
        (range(1001), 1001, ["--array=0-1000%2"]),
        (range(1002), 1001, ["--array=0-1000%2", "--export=ALL,PHOTON_BATCH_SHARD_OFFSET=1001 --array=0%2"]),
        ([0, 9, 10, 29], 10, ["--array=0,9%2", *(
            f"--export=ALL,PHOTON_BATCH_SHARD_OFFSET={n} --array={e}%2" for n, e in ((10, 0), (20, 9))
        )]),
    ],
)  # fmt: skip
def test_arrays(shards: list[int], size: int, options: list[str]) -> None:
    made = arrays(shards, size)
    assert [array.options(2) for array in made] == options
    assert [array.offset + element for array in made for element in array.elements] == list(shards)
    for array in made:
        for element in array.elements:
            told = {"PHOTON_BATCH_SHARDS": "5000", "PHOTON_BATCH_SHARD_OFFSET": str(array.offset)}
            shard = shard_from(None, {**told, "SLURM_ARRAY_TASK_ID": str(element)})
            assert shard == Shard(array.offset + element, 5000), "what run makes of it"


def test_a_large_array_tells_of_the_others() -> None:
    text = Script("cars.yaml", 2500, 16).text()
    assert "--array=0-1000%16" in directives(text)
    told = [line for line in text.splitlines() if line.startswith("#   sbatch ")]
    assert told == [
        "#   sbatch --export=ALL,PHOTON_BATCH_SHARD_OFFSET=1001 --array=0-1000%16 FILE",
        "#   sbatch --export=ALL,PHOTON_BATCH_SHARD_OFFSET=2002 --array=0-497%16 FILE",
    ]


def test_the_script_to_copy_is_the_one_we_write() -> None:
    made = Script("cars.yaml", 64, 16, time="12:00:00", gpus=1, cpus=8, requeues=True)
    assert (JOBS / "array.sh").read_text(encoding="utf-8") == made.text()


@pytest.mark.parametrize("name", ["array.sh", "node.sh", "without --self-requeue"])
@pytest.mark.parametrize("code", [0, 3, 75])
@pytest.mark.parametrize("restarts", [None, "2"])
def test_what_bash_makes_of_it(tmp_path: Path, name: str, code: int, restarts: str | None) -> None:
    """With an srun and an scontrol that tell how they were called."""
    script = JOBS / name
    if not script.exists():
        script = tmp_path / "script.sh"
        Script("cars.yaml", 64, 16).write(script)
    told = tmp_path / "told"
    for program, ends in (("srun", code), ("scontrol", 0)):
        stub = tmp_path / program
        stub.write_text(
            f'#!/bin/sh\necho {program} "$@" "[$PHOTON_BATCH_SHARDS $SRUN_CPUS_PER_TASK]" >> {told}\nexit {ends}\n'
        )
        stub.chmod(0o755)
    slurm = {"SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3", "SLURM_JOB_ID": "20", "SLURM_CPUS_PER_TASK": "8"}
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **slurm}
    if restarts is not None:
        environment["SLURM_RESTART_COUNT"] = restarts
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    calls = told.read_text().splitlines()
    steal, label = (" --steal" if restarts else ""), ("--label " if name == "node.sh" else "")
    shards = "" if name == "node.sh" else "64"
    run_call = f"photon-batch run cars.yaml --no-progress --grace 20{steal}"
    assert calls[0] == f"srun {label}{run_call} [{shards} 8]"
    element = {"array.sh": "17_3", "node.sh": "20"}.get(name)
    assert calls[1:] == ([f"scontrol requeue {element} [{shards} 8]"] if code == 75 and element else [])


def test_missing_shards(manifest_file: Write) -> None:
    """Ten chunks; of five shards each has two."""
    write_parquet(Path("rows.parquet"), [png()] * 40)
    manifest = load_manifest(manifest_file(tasks=TASKS))
    for number in (0, 3):
        run(manifest, shard=Shard(number, 5), engine=ShufflingEngine())
    out = Path("out")
    assert missing_shards(out, 5) == [1, 2, 4]
    assert missing_shards(out, 10) == [2, 3, 4, 5, 8, 9]
    assert missing_shards(out, 3) == [0, 1, 2]
    run(manifest, engine=ShufflingEngine())
    assert missing_shards(out, 5) == []
    assert missing_shards(out, 64) == [], "shards without chunks have nothing to do"
    (out / "data/part-000007.arrow").unlink()
    assert missing_shards(out, 5) == [3]
    changed = load_manifest(manifest_file(tasks="[{name: cap, type: caption, length: short}]"))
    run(changed, shard=Shard(1, 5), engine=ShufflingEngine())
    assert missing_shards(out, 5) == [0, 2, 3, 4], "answers of an earlier manifest are not those that are asked for"


def call(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["slurm", *arguments])
    return done.exit_code, done.stdout, done.stderr


def test_the_commands(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 40)
    path = manifest_file(tasks=TASKS)
    code, told, _ = call("script", "m.yaml", "--tasks", "4", "--max-running", "2", "--gpus", "1", "--self-requeue")
    assert (code, told) == (0, Script("m.yaml", 4, 2, gpus=1, requeues=True).text())
    assert call("script", "m.yaml", "--tasks", "4", "--out", "m.sh") == (0, "", "")
    assert Path("m.sh").read_text() == Script("m.yaml", 4).text()
    code, told, complaint = call("script", "m.yaml", "--tasks", "4", "--out", "m.sh")
    assert (code, told) == (2, "")
    assert "m.sh is there already; choose another --out, or remove it" in complaint
    code, _, complaint = call("script", "m.yaml", "--tasks", "4", "--partition", "a b")
    assert code == 2
    assert "--partition 'a b' does not fit an #SBATCH line; write one word without quotes" in complaint

    code, _, complaint = call("retry", "out", "--tasks", "4")
    assert code == 2
    assert "there is no folder out" in complaint
    run(load_manifest(path), shard=Shard(1, 5), engine=ShufflingEngine())
    assert call("retry", "out", "--tasks", "5") == (0, "--array=0,2-4\n", "")
    code, told, _ = call("retry", "out", "--tasks", "5", "--max-array-size", "3", "--max-running", "1")
    assert told == "--array=0,2%1\n--export=ALL,PHOTON_BATCH_SHARD_OFFSET=3 --array=0-1%1\n"
    run(load_manifest(path), engine=ShufflingEngine())
    code, told, said = call("retry", "out", "--tasks", "5")
    assert (code, told) == (0, "")
    assert "all 5 shards of out are done; there is nothing to submit" in said


def test_who_is_at_work_is_told(manifest_file: Write, caplog: pytest.LogCaptureFixture) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 40)
    run(load_manifest(manifest_file(tasks=TASKS)), shard=Shard(1, 5), engine=ShufflingEngine())
    owner = {"shard": "0002-of-0005", "host": "elsewhere", "pid": 7, "started": 4e9, "heartbeat": 4e9, "token": "x"}
    Path("out/shards/0002-of-0005.owner.json").write_text(json.dumps(owner))
    assert call("retry", "out", "--tasks", "5")[:2] == (0, "--array=0,2-4\n")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["process 7 on elsewhere is at work on shard 0002-of-0005, so leave that out, or wait for it"]


def test_a_stream_has_no_shards(manifest_file: Write) -> None:
    out = Path("out")
    out.mkdir()
    head = {"plan_version": 1, "generation": 0, "job_id": "x", "chunk_rows": 4, "reader": "stream", "reading": {}}
    (out / "plan.json").write_text(json.dumps({**head, "units_file": "units-0.jsonl", "spans": [[0, 0, 1 << 62]]}))
    (out / "units-0.jsonl").write_text("")
    code, _, complaint = call("retry", "out", "--tasks", "5")
    assert code == 2
    assert "how many rows this input has is not known before it is read" in complaint
