"""A model of the real size runs on a CPU in little more memory than its weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.engine.full_size", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_detect_with_2b_weights(tmp_path: Path) -> None:
    script("make", str(tmp_path))
    weights = (tmp_path / "model.safetensors").stat().st_size
    assert weights == pytest.approx(1_927_237_104 * 2, rel=1e-4)
    answer = json.loads(script("detect", str(tmp_path)))
    assert answer["error"] is None
    assert answer["objects"] <= 2
    assert answer["n_tokens"] == 3 * answer["objects"]
    assert answer["peak"] <= 1.2 * weights + 1e9, f"peak {answer['peak'] / 1e9:.2f} GB for {weights / 1e9:.2f} GB"
    (tmp_path / "model.safetensors").unlink()
