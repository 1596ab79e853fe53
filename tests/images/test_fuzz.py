"""Pictures damaged at random: each is decoded or fails with a code, and none ends, stalls or fills the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .fuzz import FORMATS

ROOT = Path(__file__).parents[2]
SLOW = 2.0
"""Seconds of its thread's own time that one picture may take: these have 4 megapixels at most."""
MEMORY = 100_000_000
"""Bytes that decoding one picture at a time may add: six copies of one of 4 megapixels."""
CODES = {"EMPTY", "TOO_LARGE", "TRUNCATED", "UNIDENTIFIED", "UNREADABLE"}


@pytest.mark.parametrize(("count", "seed"), [(300, 0), pytest.param(3000, 1, marks=pytest.mark.slow)])
def test_damaged_pictures(count: int, seed: int) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.images.fuzz", str(count), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    made = json.loads(done.stdout)
    assert sum(made["outcomes"].values()) == count
    found = {tuple(outcome.split()) for outcome in made["outcomes"]}
    codes = {outcome for _, outcome in found} - {"decoded"}
    assert codes <= {f"IMAGE_{code}" for code in CODES}
    assert {"IMAGE_TRUNCATED", "IMAGE_UNIDENTIFIED", "IMAGE_UNREADABLE"} <= codes
    assert len(FORMATS) >= 9
    for format in FORMATS:
        assert any(code != "decoded" for name, code in found if name == format), f"{format} was not hurt"
    assert {name for name, outcome in found if outcome == "decoded"} >= {"JPEG", "GIF", "BMP", "PPM"}
    assert made["slowest"] < SLOW
    assert made["grown"] < MEMORY
