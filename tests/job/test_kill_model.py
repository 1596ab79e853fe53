"""Five kills of a run with a model: same rows, tokens and bins as a run that nobody disturbed, scores within 1e-4."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
from PIL import Image

from tests.job.inputs import write_parquet
from tests.program import COMMAND
from tests.report.runs import encoded

ROWS, CHUNK = 28, 4
MANIFEST = """\
version: 1
input: {{parquet: rows.parquet, id: name}}
model: {{path: photon://tiny}}
tasks:
  - {{name: things, type: detect, objects: [cat, dog], max_objects: 4}}
  - {{name: spots, type: point, objects: [eye], max_objects: 4}}
  - {{name: cap, type: caption, max_tokens: 12}}
output: {{dir: {out}, chunk_rows: {chunk}}}
"""


def rows_of(folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(f"{folder}/data", format="ipc").to_table().to_pylist()
    return found


def apart(ours: Any, theirs: Any) -> float:
    """How far the scores are apart at most; everything else has to be equal."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        return max(
            (apart(ours[key], theirs[key]) if not key.startswith("score") else abs(ours[key] - theirs[key]))
            for key in ours
        )
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        return max((apart(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    assert ours == theirs
    return 0.0


@pytest.mark.slow
def test_five_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    noise, dice = np.random.default_rng(1), random.Random(1)
    pictures = [Image.fromarray(noise.integers(0, 256, (40, 50, 3), np.uint8)) for _ in range(ROWS)]
    write_parquet(Path("rows.parquet"), [encoded(picture) for picture in pictures])
    for out in ("whole", "killed"):
        Path(f"{out}.yaml").write_text(MANIFEST.format(out=out, chunk=CHUNK))
    subprocess.run([*COMMAND, "run", "whole.yaml"], check=True, capture_output=True)
    Path("killed").mkdir()
    for path in Path("whole").iterdir():
        if path.name.startswith(("plan", "units")):
            shutil.copy(path, Path("killed") / path.name)
    for kill in range(5):
        process = subprocess.Popen(
            [*COMMAND, "run", "killed.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        data, wanted = Path("killed/data"), kill + 1
        while process.poll() is None and (not data.exists() or len(list(data.glob("part-*"))) < wanted):
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL, "it was still at work"
    subprocess.run([*COMMAND, "run", "killed.yaml"], check=True, capture_output=True)
    ours, theirs = rows_of("killed"), rows_of("whole")
    assert [row["row_id"] for row in ours] == [f"row{n}" for n in range(ROWS)]
    assert apart(ours, theirs) <= 1e-4
