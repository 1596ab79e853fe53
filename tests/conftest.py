"""What several test folders share: a folder to work in, manifests, and a world without a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.job.inputs import DEFAULT_TASKS

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# How long an example takes says how busy the machine is.
settings.register_profile("ours", deadline=None)
settings.load_profile("ours")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is also where relative paths start from."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def manifest_file(workplace: Path) -> Callable[..., Path]:
    """Writes m.yaml for rows.parquet, the null model and ``DEFAULT_TASKS``; each part can be replaced by its name."""

    def write(**parts: str) -> Path:
        text = {
            "version": "1",
            "input": "{parquet: rows.parquet, id: name}",
            "model": "{path: photon://null}",
            "tasks": "\n" + DEFAULT_TASKS.rstrip(),
            "output": "{dir: out, chunk_rows: 4}",
            **parts,
        }
        path = workplace / "m.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in text.items()), encoding="utf-8")
        return path

    return write
