"""The command line: exit codes, what goes to which stream, and the six wrong manifests of the acceptance."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from tests.job.inputs import DEFAULT_TASKS, png, write_parquet
from tests.program import COMMAND

Write = Callable[..., Path]


def photon_batch(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def rows(workplace: Path) -> Path:
    return write_parquet(workplace / "rows.parquet", [png()] * 6)


def only_object(text: str) -> dict[str, Any]:
    """Standard output as one JSON object, with nothing beside it."""
    assert text.count("\n") == 1
    made: dict[str, Any] = json.loads(text)
    return made


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"engine": "\n  max_batches: 4"},
            "m.yaml:11: engine.max_batches: unknown key; did you mean max_batch?",
        ),
        (
            {"output": "\n  dir: out\n  dir: there"},
            "m.yaml:11: output.dir: is given twice, first on line 10; keep one of them",
        ),
        (
            {"input": "\n  parquet: rows.parquet\n  id: file_name"},
            "m.yaml:4: input.id: the input has no column file_name; did you mean name?",
        ),
        (
            {"input": "\n  parquet: row.parquet"},
            "m.yaml:3: input.parquet.0: there is no row.parquet; relative paths start from {here}",
        ),
        (
            {"tasks": '\n  - name: ask\n    type: query\n    question: "Is it {subjet}?"'},
            "m.yaml:7: tasks.0.question: {subjet} names no column of the input; "
            "did you mean subject? (write {{ for a brace itself)",
        ),
        (
            {"tasks": "\n  - name: things\n    type: detect\n    objects: [cat, 012]"},
            'm.yaml:7: tasks.0.objects.1: 012 is a number to YAML, and text is wanted; put it in quotes: "012"',
        ),
    ],
    ids=["unknown key", "duplicate key", "missing column", "missing file", "template", "label without quotes"],
)
def test_six_wrong_manifests(manifest_file: Write, parts: dict[str, str], message: str) -> None:
    manifest_file(**parts)
    message = message.replace("{here}", os.getcwd())
    for command in ("run", "validate"):
        done = photon_batch(command, "m.yaml")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"photon-batch: error: {message}\n"
    done = photon_batch("validate", "m.yaml", "--json")
    (problem,) = only_object(done.stdout)["problems"]
    assert f"m.yaml:{problem['line']}: {problem['key']}: {problem['message']}" == message
    assert not Path("out").exists()


def test_several_problems_in_one_message(manifest_file: Write) -> None:
    done = photon_batch("validate", manifest_file(version="2", engine="{depth: 3}").name)
    assert done.stderr == (
        "photon-batch: error: m.yaml: 3 things to mend\n"
        "  m.yaml:1: version: 2 does not fit; write 1\n"
        f"  m.yaml:2: input.parquet.0: there is no rows.parquet; relative paths start from {os.getcwd()}\n"
        "  m.yaml:10: engine.depth: 3 does not fit; write 1 or 2\n"
    )


def test_a_manifest_that_is_not_there(workplace: Path) -> None:
    done = photon_batch("run", "nowhere.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "photon-batch: error: cannot read the manifest nowhere.yaml: No such file or directory; "
        "give the path of a YAML file\n"
    )


@pytest.mark.usefixtures("rows")
def test_validate(manifest_file: Write) -> None:
    manifest_file()
    done = photon_batch("validate", "m.yaml", "--json")
    assert done.returncode == 0
    assert done.stderr == "m.yaml is in order: things, spots, cap, ask over 6 rows, into out\n"
    made = only_object(done.stdout)
    assert (made["valid"], made["rows"], made["tasks"]) == (True, 6, ["things", "spots", "cap", "ask"])
    assert made["manifest"]["engine"]["depth"] == 2
    assert not Path("out").exists()


@pytest.mark.usefixtures("rows")
def test_run_tells_a_person_on_stderr_and_a_program_on_stdout(manifest_file: Write) -> None:
    manifest_file()
    done = photon_batch("run", "m.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert lines[:3] == [
        "photon-batch: loading photon://null",
        "photon-batch: 6 rows to do, tasks: things, spots, cap, ask",
        "6 rows: 6 ok, 0 failed",
    ]
    assert "results: out/data (2 part files" in done.stderr
    assert lines[-1].startswith("NOTE: photon://null is not a trained model; its answers are meaningless")
    opened = lines[-2].strip()
    assert subprocess.run(opened, shell=True, capture_output=True, check=True, text=True).stdout, "the advice works"

    done = photon_batch("run", "m.yaml", "--fresh", "--json", "--quiet", "--limit", "3")
    assert (done.returncode, done.stderr) == (0, "")
    made = only_object(done.stdout)
    assert (made["rows"], made["requests"], made["exit_code"], made["output"]) == (3, 15, 0, "out")


def test_exit_codes(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(), b"broken", b"broken"])
    manifest_file()
    done = photon_batch("run", "m.yaml", "--json")
    assert done.returncode == 3
    assert only_object(done.stdout)["exit_code"] == 3
    assert done.stderr.count("IMAGE_UNIDENTIFIED") == 2, "once when it happens, once in the summary"

    done = photon_batch("run", "m.yaml", "--json")
    assert done.returncode == 3, "the verdict is the same the next day"
    assert "nothing was left to do" in done.stderr
    assert only_object(done.stdout)["new_rows"] == 0

    Path("out/notes.txt").write_text("mine")
    done = photon_batch("run", "m.yaml", "--json")
    assert done.returncode == 5
    assert done.stderr.startswith("photon-batch: error: out holds a file that is not ours: out/notes.txt")
    assert only_object(done.stdout)["exit_code"] == 5
    Path("out/notes.txt").unlink()

    Path("rows.parquet").write_bytes(b"PAR1 nothing more")
    done = photon_batch("run", "m.yaml", "--fresh")
    assert done.returncode == 4
    assert done.stderr.startswith("photon-batch: error: cannot read rows.parquet")
    assert len(ds.dataset("out/data", format="ipc").to_table()) == 3, "nothing is removed before all is ready"


@pytest.mark.parametrize("arguments", [["run"], ["run", "m.yaml", "--limit", "0"], ["walk"], ["run", "m.yaml", "-x"]])
def test_wrong_arguments(arguments: list[str]) -> None:
    done = photon_batch(*arguments)
    assert (done.returncode, done.stdout) == (2, "")


def test_help_and_version() -> None:
    done = photon_batch("--help")
    assert done.returncode == 0
    assert "validate" in done.stdout
    from photon import __version__

    assert photon_batch("--version").stdout == f"photon-batch {__version__}\n"


@pytest.mark.usefixtures("rows")
def test_a_bug_keeps_its_traceback(manifest_file: Write) -> None:
    manifest_file()
    broken = "import photon.manifest.load as l; l.load_manifest = None; from photon.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", broken, "run", "m.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "photon-batch: error" not in done.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_ctrl_c_before_anything_is_written(manifest_file: Write, command: str) -> None:
    manifest_file()
    broken = "import photon.manifest.load as l; l.load_manifest = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt); "
    script = broken + COMMAND[-1]
    done = subprocess.run(
        [sys.executable, "-c", script, command, "m.yaml"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "photon-batch: error: interrupted\n")


@pytest.mark.usefixtures("rows")
def test_input_in_the_output_folder(manifest_file: Write) -> None:
    manifest_file(output="{dir: .}")
    for arguments in (["validate"], ["run"], ["run", "--fresh"]):
        done = photon_batch(*arguments, "m.yaml")
        assert done.returncode == 2
        assert done.stderr == (
            "photon-batch: error: m.yaml:2: input.parquet: rows.parquet lies in output.dir, ., "
            "which is for results alone; choose another output.dir\n"
        )
    assert Path("rows.parquet").exists()


def test_ctrl_c_keeps_what_is_finished(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(size=(300, 300))] * 3000)
    manifest_file(output="{dir: out, chunk_rows: 50}", tasks="\n" + DEFAULT_TASKS.rstrip())
    # A test run in a shell's background inherits an ignored SIGINT; a person's terminal does not.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + COMMAND[-1]
    process = subprocess.Popen(
        [*COMMAND[:-1], heeding, "run", "m.yaml", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not list(Path("out/data").glob("part-*.arrow")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 75
    assert "SIGINT: finishing what is in flight; once more ends at once" in stderr
    assert "stopped before the end; the same command goes on" in stderr
    assert only_object(stdout)["exit_code"] == 75
    table = ds.dataset("out/data", format="ipc").to_table()
    record = json.loads(Path("out/run.json").read_text())
    assert record["state"] == "preempted"
    assert record["counts"]["rows"] == table.num_rows
    assert table.num_rows % 50 == 0
    assert 0 < table.num_rows < 3000
    assert table["row_id"].to_pylist() == [f"row{i}" for i in range(table.num_rows)]
    assert not list(Path("out/data").glob(".*")), "nothing half-written is left"


@pytest.mark.parametrize(
    ("at_the_third", "code", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM)", 75, "stopped before the end; the same command goes on"),
        pytest.param(
            *("raise EngineError('the device is gone')", 70, "photon-batch: error: the device is gone\n"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)", 130, "SIGINT after SIGINT"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_ends_before_the_end(manifest_file: Write, at_the_third: str, code: int, told: str) -> None:
    """The engine goes down, or a signal comes, with the third answer. The same command goes on."""
    write_parquet(Path("rows.parquet"), [png()] * 400)  # more than are taken in ahead
    manifest_file()
    script = f"""
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # heeded, as in a terminal
from photon.cli import main
from photon.engine.null import NullEngine
from photon.errors import EngineError

honest = NullEngine.run
def run(self, requests, *, trace=None):
    for number, result in enumerate(honest(self, requests, trace=trace)):
        if number == 2:
            {at_the_third}
        yield result
NullEngine.run = run
main()
"""
    done = subprocess.run([sys.executable, "-c", script, "run", "m.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    done = photon_batch("run", "m.yaml")
    assert (done.returncode, "400 rows: 400 ok, 0 failed" in done.stderr) == (0, True)
