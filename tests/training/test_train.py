"""A short training of a tiny model lowers the loss, and goes on from where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from photon.models.load import load_model
from training.train import smoke


@pytest.mark.slow
def test_smoke_training_lowers_the_loss_and_resumes(tmp_path: Path) -> None:
    curve = smoke(tmp_path, torch.device("cpu"))
    for gate in ("g0", "g1"):
        losses = [entry["loss"] for entry in curve if entry["gate"] == gate]
        assert len(losses) == 2
        assert losses[-1] < 0.9 * losses[0], gate
    checkpoint = tmp_path / "checkpoint"
    progress = json.loads((checkpoint / "progress.json").read_text())
    assert progress["steps"] == {"g0": 100, "g1": 100}
    loaded = load_model(str(checkpoint), device=torch.device("cpu"), dtype=torch.float32)
    assert all(weight.isfinite().all() for weight in loaded.model.state_dict().values())
    assert smoke(tmp_path, torch.device("cpu")) == curve  # nothing is left to do
