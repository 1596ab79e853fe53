"""docs/quickstart.md: its commands run as they stand, and print what its transcript shows."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from photon import __version__
from tests.docs.clone import copy
from tests.docs.pages import blocks, section, text_of
from tests.docs.quickstart import TRANSCRIPT, commands, transcript
from tests.docs.shell import masked, shown

PAGE = text_of("docs/quickstart.md")


def test_the_transcript_is_of_these_commands() -> None:
    prompts = re.findall(r"^\$ .*(?:\n> .*)*\n", TRANSCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert prompts == [shown(command, "") for command in commands()]


def test_only_installing_and_the_real_model_are_not_run() -> None:
    run = "\n".join(commands())
    others = [block.text for block in blocks(PAGE, "sh") if block.text.strip() not in run]
    assert others == [
        block.text
        for part in ("1. Install", "7. Photos need the real model")
        for block in blocks(section(PAGE, part), "sh")
    ]


def test_masks_leave_what_has_to_be_the_same() -> None:
    printed = """\
photon-batch: 8 rows took 4.0 s
2 of 4 images, 0.1 images/s, 0.3 requests/s, 0 failed, 0:00:31 left
4 rows: 4 ok, 0 failed
16 requests answered, 22 objects and points found; 1.3 s, 3.0 images/s, 12.1 requests/s
device busy 99.1%, idle 0.391 ms a step; steps: 2 vision
0/1    finished  12 of 12  100%                     0  0:00:05 ago  process 27597 on vm"""
    assert (
        masked(printed)
        == """\
4 rows: 4 ok, 0 failed
16 requests answered, N objects and points found; N s, N images/s, N requests/s
0/1    finished  12 of 12  100%                     0  N ago  process N on HOST"""
    )


@pytest.mark.slow
def test_the_commands_run_and_print_what_is_shown(tmp_path: Path) -> None:
    assert transcript(tmp_path) == TRANSCRIPT.read_text(encoding="utf-8")
    for made in ("report.html", "preview.png", "run.json"):
        assert (tmp_path / "outputs/photos" / made).stat().st_size > 1000


@pytest.mark.slow
def test_installing(tmp_path: Path) -> None:
    """As the page says, but for the gigabytes: what the package depends on is taken from where these tests run."""
    folder = tmp_path / "clone"
    copy(folder)
    (block,) = blocks(section(PAGE, "1. Install"), "sh")
    inside = {"PIP_NO_DEPS": "1", "PYTHONPATH": sysconfig.get_path("purelib")}
    script = f"set -e\n{block.text}\ncd /\ncommand -v photon-batch\nphoton-batch --version\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env={**os.environ, **inside}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == [f"{folder}/.venv/bin/photon-batch", f"photon-batch {__version__}"]
