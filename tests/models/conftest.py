from __future__ import annotations

import pytest
import torch

from photon.models.load import LoadedModel, load_model


@pytest.fixture(scope="session")
def tiny() -> LoadedModel:
    return load_model("photon://tiny", device=torch.device("cpu"), dtype=torch.float32)
