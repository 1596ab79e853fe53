"""The cron line and the systemd units in jobs/: read, checked by systemd itself, and run for some nights over a folder
of pictures that grows."""

from __future__ import annotations

import configparser
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from photon.job.output import RunOutput
from photon.plan.ledger import Ledger
from tests.data.pictures import picture

ROOT = Path(__file__).parents[2]
CRON, UNITS = ROOT / "jobs/cron/nightly.cron", ROOT / "jobs/systemd"
SERVICE, TIMER = UNITS / "photon-batch-nightly.service", UNITS / "photon-batch-nightly.timer"
HOME = "/srv/photon"
PROMPTS = 3
MANIFEST = """\
version: 1
input: {folder: photos, id: file_name}
model: {path: photon://null}
tasks: [{name: things, type: detect, objects: [cat, dog]}, {name: cap, type: caption}]
output: {dir: outputs/nightly}
"""


def crontab() -> tuple[dict[str, str], str, str]:
    """Its variables, the time and the command of its one line."""
    lines = [line for line in CRON.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    *variables, job = lines
    *when, command = job.split(" ", 5)
    return dict(line.split("=", 1) for line in variables), " ".join(when), command


def unit(path: Path) -> configparser.ConfigParser:
    made = configparser.ConfigParser(interpolation=None)
    made.optionxform = str  # type: ignore[assignment, method-assign]
    made.read(path, encoding="utf-8")
    return made


def test_the_two_schedules_run_the_same_thing() -> None:
    variables, when, command = crontab()
    assert variables == {"SHELL": "/bin/sh", "FOLDER": HOME, "PROGRAM": f"{HOME}/venv/bin/photon-batch"}
    service, timer = unit(SERVICE)["Service"], unit(TIMER)["Timer"]
    assert "%" not in command, "cron ends a command at it"
    assert service["WorkingDirectory"] == variables["FOLDER"]
    program, *arguments = service["ExecStart"].split()
    assert program == variables["PROGRAM"]
    assert f'"$PROGRAM" {" ".join(arguments)}; }}' in command
    assert (when, timer["OnCalendar"]) == ("30 1 * * *", "*-*-* 01:30:00")
    assert TIMER.stem == SERVICE.stem, "a timer starts the service of its name"


def test_the_units_are_in_order(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here; apt-get install systemd")
    program = tmp_path / "venv/bin/photon-batch"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    for path in (SERVICE, TIMER):
        text = path.read_text(encoding="utf-8").replace(HOME, str(tmp_path))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / SERVICE.name, tmp_path / TIMER.name], capture_output=True, text=True
    )
    told = [line for line in done.stderr.splitlines() if "photon-batch" in line]
    assert (done.returncode, told) == (0, [])
    service = unit(SERVICE)["Service"]
    assert (service["SuccessExitStatus"], service["RestartForceExitStatus"].split()) == ("75", ["70", "75"])


class Nights:
    """A folder with a manifest, and pictures that come to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "outputs/nightly"
        (folder / "photos").mkdir()
        (folder / "nightly.yaml").write_text(MANIFEST)
        self.program = Path(sys.executable).parent / "photon-batch"

    def come(self, *numbers: int) -> None:
        for number in numbers:
            (self.folder / f"photos/{number}.png").write_bytes(picture(number))

    def cron(self) -> str:
        """What cron would send by mail."""
        variables, _, command = crontab()
        ours = {**variables, "FOLDER": str(self.folder), "PROGRAM": str(self.program)}
        done = subprocess.run(
            [variables["SHELL"], "-c", command], env={**os.environ, **ours}, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    def systemd(self) -> int:
        command = unit(SERVICE)["Service"]["ExecStart"].replace(f"{HOME}/venv/bin/photon-batch", str(self.program))
        return subprocess.run(command.split(), cwd=self.folder, capture_output=True).returncode

    @property
    def log(self) -> str:
        return (self.folder / "nightly.log").read_text()

    def requests(self) -> int:
        """All that the model was ever asked."""
        return sum(record.requests for record in Ledger.read(self.out).records.values())

    def names(self) -> list[str]:
        return sorted(str(row["row_id"]) for row in RunOutput(self.out).rows(["row_id"]))

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.out.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("flock") is None, reason="no flock here; apt-get install util-linux")
def test_four_nights(workplace: Path) -> None:
    nights = Nights(workplace)
    nights.come(0, 1, 2, 3, 4)
    assert nights.cron() == ""
    assert (nights.requests(), nights.names()) == (5 * PROMPTS, [f"{n}.png" for n in range(5)])
    first = {path.name: path.read_bytes() for path in (nights.out / "data").iterdir()}

    nights.come(5, 6, 7)
    assert nights.cron() == ""
    assert (nights.requests(), nights.names()) == (8 * PROMPTS, [f"{n}.png" for n in range(8)]), "the new ones, once"
    assert first.items() <= {path.name: path.read_bytes() for path in (nights.out / "data").iterdir()}.items()
    assert re.findall(r"(\d+) requests answered", nights.log) == ["15", "9"]

    before = nights.files()
    assert nights.cron() == ""
    assert "nothing was left to do" in nights.log
    assert nights.systemd() == 0
    assert nights.files() == before

    nights.come(8)
    with open(workplace / "nightly.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert nights.cron() == "", "the night before is at work: this one leaves it alone"
    assert "flock: failed to get lock" in nights.log
    assert nights.files() == before
    assert nights.systemd() == 0
    assert nights.requests() == 9 * PROMPTS

    (workplace / "photos/3.png").write_bytes(picture(300))
    assert "ended with an error; see nightly.log there" in nights.cron()
    assert "3.png changed since the plan was made" in nights.log


@pytest.mark.parametrize(("code", "mail"), [(0, ""), (75, ""), (3, "ended with an error"), (70, "ended with an error")])
def test_what_cron_mails(workplace: Path, code: int, mail: str) -> None:
    nights = Nights(workplace)
    nights.program = workplace / "program"
    nights.program.write_text(f'#!/bin/sh\necho "said $*"\nexit {code}\n')
    nights.program.chmod(0o755)
    told = nights.cron()
    assert mail in told if mail else not told
    assert "said run nightly.yaml --no-progress" in nights.log
