"""docs/quickstart.md: its commands run as they stand, and print what its transcript shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import blocks, text_of
from tests.docs.quickstart import TRANSCRIPT, commands, masked, prompted, run_all, transcript


def test_the_transcript_is_of_these_commands() -> None:
    shown = re.findall(r"^\$ (.*(?:\n> .*)*)", TRANSCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == [prompted(command) for command in commands()]


def test_only_installing_and_the_real_model_are_not_run() -> None:
    run = "\n".join(commands())
    others = [block.text for block in blocks(text_of("docs/quickstart.md"), "sh") if block.text.strip() not in run]
    assert len(others) == 2
    assert "pip install" in others[0]
    assert "outputs/real" in others[1]


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
    assert transcript(run_all(tmp_path)) == TRANSCRIPT.read_text(encoding="utf-8")
    for made in ("report.html", "preview.png", "run.json"):
        assert (tmp_path / "outputs/photos" / made).stat().st_size > 1000
