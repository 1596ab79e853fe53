"""How commands speak: colour and width on a terminal, JSON lines, one form of errors, and help with examples."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from photon.cli import app, main
from photon.cli.log import JsonLines, LogFormat, LogStream, painted, set_up_log
from photon.job.progress import Lines, progress_for
from tests.job.inputs import png, write_parquet
from tests.program import COMMAND

Write = Callable[..., Path]
RED, YELLOW, PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[0m"


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def photon_batch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The console script, in this process."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as changed:
            changed.setattr(sys, "argv", ["photon-batch", *arguments])
            for name, value in environment.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, told.out, told.err)  # type: ignore[arg-type]

    return run


def on_a_terminal(columns: int, *arguments: str, **environment: str) -> str:
    """Standard error as a terminal of so many columns gets it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {"TERM": "xterm", **{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}, **environment}
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=theirs, env=env) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            told += part
        process.wait()
    os.close(ours)
    return told.decode().replace("\r\n", "\n")


@pytest.fixture
def broken_rows(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(), b"broken"])
    manifest_file()


@pytest.mark.usefixtures("workplace")
def test_colour_is_for_terminals(photon_batch: Run) -> None:
    assert on_a_terminal(80, "run", "no.yaml").startswith(f"photon-batch: {RED}error:{PLAIN} cannot read the manifest")
    assert photon_batch("run", "no.yaml").stderr.startswith("photon-batch: error: cannot read the manifest")


@pytest.mark.parametrize(
    ("wish", "shown"),
    [({}, f"{RED}x{PLAIN}"), ({"NO_COLOR": ""}, f"{RED}x{PLAIN}"), ({"NO_COLOR": "0"}, "x"), ({"TERM": "dumb"}, "x")],
)
def test_colour_is_for_those_who_want_it(monkeypatch: pytest.MonkeyPatch, wish: dict[str, str], shown: str) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in wish.items():
        monkeypatch.setenv(name, value)
    assert painted("x", "red") == shown


@pytest.mark.usefixtures("broken_rows")
def test_a_summary_fits_its_terminal(photon_batch: Run) -> None:
    told = on_a_terminal(60, "run", "m.yaml", "--no-progress")
    assert f"photon-batch: {YELLOW}warning:{PLAIN} row row1 failed: IMAGE_UNIDENTIFIED" in told
    *summary, command = told[told.index("\n2 rows: ") : told.index("NOTE")].strip().splitlines()
    assert max(map(len, summary)) <= 60
    (row,) = [line for line in summary if "first: row" in line]
    assert len(row) == 60
    assert row.endswith("…")
    lines = photon_batch("run", "m.yaml", "--fresh").stderr.splitlines()
    assert len(command) > 60
    assert command.strip() in [line.strip() for line in lines], "it can be copied"
    assert any("requests answered" in line and "requests/s" in line for line in lines), "on no terminal, none is broken"


@pytest.mark.usefixtures("broken_rows")
def test_json_lines(photon_batch: Run) -> None:
    done = photon_batch("run", "m.yaml", "--log-format", "json", "--json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 3
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    assert {line["time"][-6:] for line in lines} == {"+00:00"}
    assert lines[0] | {"time": 0} == {"time": 0, "level": "info", "logger": "photon.job.engine",
                                      "message": "loading photon://null"}  # fmt: skip
    (warning,) = [line for line in lines if line["level"] == "warning"]
    assert "IMAGE_UNIDENTIFIED" in warning["message"]
    assert (warning["row"], warning["code"]) == ("row1", "IMAGE_UNIDENTIFIED")
    assert lines[-1]["message"].startswith("2 rows: 1 ok, 1 failed")
    assert json.loads(done.stdout)["rows"] == 2

    done = photon_batch("validate", "no.yaml", "--log-format", "json")
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["level"] == "error"
    assert json.loads(line)["message"].startswith("cannot read the manifest no.yaml")


def test_progress_is_log_lines_where_standard_error_is_for_json(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(form=LogFormat.JSON)
    shown = progress_for(LogStream())
    assert isinstance(shown, Lines)
    print("12 of 20 images", file=LogStream(), flush=True)
    line = json.loads(capsys.readouterr().err)
    assert (line["logger"], line["message"]) == ("photon.progress", "12 of 20 images")


def test_rows_and_codes_are_fields_of_their_own() -> None:
    record = logging.makeLogRecord(
        {"msg": "row %s failed", "args": ("r1",), "levelname": "WARNING", "row": "r1", "code": "X"}
    )
    told = json.loads(JsonLines().format(record))
    assert (told["message"], told["row"], told["code"]) == ("row r1 failed", "r1", "X")


@pytest.mark.usefixtures("broken_rows")
def test_quiet_says_only_what_went_wrong(photon_batch: Run) -> None:
    assert photon_batch("validate", "m.yaml", "-q").stderr == ""
    assert photon_batch("run", "m.yaml", "-q", "--limit", "1").stderr == ""
    (line,) = photon_batch("run", "m.yaml", "-q", "--fresh").stderr.splitlines()
    assert line.startswith("photon-batch: warning: row row1 failed: IMAGE_UNIDENTIFIED")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "missing argument 'MANIFEST'; see photon-batch run --help"),
        (["walk"], "no such command 'walk'; see photon-batch --help"),
        (["validate", "m.yaml", "--sett", "a=1"], "no such option: --sett"),
        (["validate", "m.yaml", "--set"], "option '--set' requires an argument"),
        (["bench", "decod"], "no such command 'decod'"),
    ],
)
def test_a_wrong_command_line_is_told_like_any_error(photon_batch: Run, arguments: list[str], message: str) -> None:
    done = photon_batch(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"photon-batch: error: {message}")
    assert "; see photon-batch" in line


def test_the_bare_command_shows_its_help(photon_batch: Run) -> None:
    done = photon_batch()
    assert done.returncode == 2
    assert "Usage: photon-batch" in done.stderr
    assert "error" not in done.stderr


def test_every_command_has_an_example(photon_batch: Run) -> None:
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert {"run", "validate", "schema", "init"} <= commands
    lacking = [command for command in app.registered_commands if "Examples:" not in (command.epilog or "")]
    assert not [command.callback.__name__ for command in lacking if command.callback]
    assert "\n  Examples:\n    photon-batch run cars.yaml --limit 20\n" in photon_batch("run", "--help").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(photon_batch: Run, shell: str) -> None:
    asked = {
        "bash": {"COMP_WORDS": "photon-batch val", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "photon-batch val"},
        "fish": {"_TYPER_COMPLETE_ARGS": "photon-batch val", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    assert "validate" in photon_batch(**{"_PHOTON_BATCH_COMPLETE": f"complete_{shell}", **asked}).stdout


@pytest.mark.usefixtures("broken_rows")
def test_show_resolved_and_overrides(photon_batch: Run) -> None:
    done = photon_batch("validate", "m.yaml", "--set", "engine.depth=1", "--show-resolved", PHOTON_BATCH__RUN__SEED="4")
    assert done.returncode == 0
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert lines["engine.depth"] == ["1", "--set", "engine.depth"]
    assert lines["run.seed"] == ["4", "environment", "PHOTON_BATCH__RUN__SEED"]
    assert lines["output.dir"] == ["out", "m.yaml:9"]
    assert lines["image.exif"] == ["apply", "default"]

    done = photon_batch("validate", "m.yaml", "--show-resolved", "--json", "--set", "tasks.0.objects=[a]")
    told = json.loads(done.stdout)["resolved"]
    assert told["tasks.0.objects"] == {"value": ["a"], "origin": "--set tasks.0.objects"}
    assert told["output.dir"] == {"value": "out", "origin": "m.yaml:9"}

    done = photon_batch("validate", "m.yaml", "--json", "--set", "engine.depth=3")
    assert done.returncode == 2
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem == {"line": None, "origin": "--set engine.depth", "key": "engine.depth",
                       "message": "3 does not fit; write 1 or 2"}  # fmt: skip


@pytest.mark.usefixtures("broken_rows")
def test_run_takes_and_records_what_was_set(photon_batch: Run) -> None:
    done = photon_batch("run", "m.yaml", "--limit", "1", "--set", "output.dir=there", PHOTON_BATCH__RUN__SEED="4")
    assert done.returncode == 0
    record = json.loads(Path("there/run.json").read_text())
    assert (record["manifest"]["output"]["dir"], record["manifest"]["run"]["seed"], record["seed"]) == ("there", 4, 4)


def test_schema(photon_batch: Run) -> None:
    assert json.loads(photon_batch("schema").stdout)["properties"].keys() >= {"input", "model", "tasks", "output"}
    assert photon_batch("schema", "--markdown").stdout.startswith("### At the top\n")


@pytest.mark.parametrize("command", ["schema", "--help", "run rows.yaml --json"])
def test_what_was_asked_for_and_cannot_be_written_is_an_error(manifest_file: Write, command: str) -> None:
    write_parquet(Path("rows.parquet"), [png()])
    manifest_file().rename("rows.yaml")
    script = f"{shlex.join(COMMAND)} {command} >/dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    told = "cannot write to standard output: No space left on device; what was asked for is cut short"
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (5, [f"photon-batch: error: {told}"])


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.join([*COMMAND, 'schema', '--markdown'])} | head -c 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "#", "")


@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full", "2>&1 >/dev/null | head -1"])
def test_a_run_outlives_whoever_reads_its_log(manifest_file: Write, closing: str) -> None:
    """Neither the run nor a row pays for it: broken pictures are told in lines that nobody gets."""
    write_parquet(Path("rows.parquet"), [png(), b"broken", None, png()])
    path = manifest_file(errors="{max_failure_rate: 1}")
    words = [*COMMAND, "run", str(path), "--json"]
    script = f"set -o pipefail; {shlex.join(words)} {closing}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(Path("out/run.json").read_text())
    assert (record["state"], record["counts"]["ok"], record["counts"]["failed"]) == ("finished", 2, 2)
    assert not Path("out/crash").exists()
