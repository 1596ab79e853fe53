"""Checkpoints in every naming load to the same model; wrong ones are one clear error."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from photon.errors import UsageError
from photon.models.config import MoondreamConfig
from photon.models.load import load_model
from photon.models.moondream import Moondream
from photon.models.weights import dequantise_int4, load_weights
from tests.models import checkpoints
from tests.reference import FOLDER


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Moondream:
    config = MoondreamConfig.read(folder / "config.json")
    return load_weights(config, folder, device=torch.device("cpu"), dtype=dtype)


def assert_equal(a: Moondream, b: Moondream) -> None:
    left, right = a.state_dict(), b.state_dict()
    assert left.keys() == right.keys()
    for name in left:
        assert torch.equal(left[name], right[name]), name


@pytest.fixture(scope="module")
def tiny_model() -> Moondream:
    return load(checkpoints.TINY)


def test_training_names(tmp_path: Path, tiny_model: Moondream) -> None:
    renamed = checkpoints.in_training_names(checkpoints.tiny_tensors())
    assert not any(name.startswith("model.") for name in renamed)
    assert_equal(load(checkpoints.write(tmp_path / "a", renamed)), tiny_model)
    compiled = checkpoints.in_training_names(checkpoints.tiny_tensors(), infix="._orig_mod")
    assert_equal(load(checkpoints.write(tmp_path / "b", compiled)), tiny_model)


def test_shards(tmp_path: Path, tiny_model: Moondream) -> None:
    assert_equal(load(checkpoints.write_sharded(tmp_path, checkpoints.tiny_tensors())), tiny_model)


def test_int4(tmp_path: Path) -> None:
    packed, plain = checkpoints.in_int4(checkpoints.tiny_tensors())
    assert sum(name.endswith(".packed") for name in packed) == 3 * 4 + 6
    ours = load(checkpoints.write(tmp_path / "packed", packed))
    assert_equal(ours, load(checkpoints.write(tmp_path / "plain", plain)))


def test_int4_golden() -> None:
    golden = load_file(FOLDER / "int4_linear.safetensors")
    packed, scale, zero = (golden[f"weight.{part}"] for part in ("packed", "scale", "zero_point"))
    assert torch.equal(dequantise_int4(packed, scale, zero, columns=256), golden["expected_fp32"])
    rounded = dequantise_int4(packed, scale, zero, columns=256).bfloat16()
    assert torch.equal(rounded, golden["expected_bf16"])


def test_bfloat16_is_the_file_itself() -> None:
    stored = checkpoints.tiny_tensors()
    for name, tensor in load(checkpoints.TINY, torch.bfloat16).state_dict().items():
        assert torch.equal(tensor, stored[f"model.{name}"]), name


def test_everything_wrong_is_one_error(tmp_path: Path) -> None:
    tensors = checkpoints.tiny_tensors()
    del tensors["model.text.wte"]
    tensors["model.text.blocks.3.ln.bias"] = torch.zeros(128)
    tensors["model.vision.post_ln.bias"] = torch.zeros(65)
    with pytest.raises(UsageError) as caught:
        load(checkpoints.write(tmp_path, tensors))
    message = str(caught.value)
    assert "text.wte [512, 128] is missing" in message
    assert "text.blocks.3.ln.bias is surplus" in message
    assert "vision.post_ln.bias is [65], not [64]" in message
    assert str(tmp_path) in message


def test_an_incomplete_int4_triple(tmp_path: Path) -> None:
    packed, _ = checkpoints.in_int4(checkpoints.tiny_tensors())
    del packed["model.text.blocks.0.attn.qkv.weight.scale"]
    with pytest.raises(UsageError, match=r"text\.blocks\.0\.attn\.qkv\.weight\.scale is missing"):
        load(checkpoints.write(tmp_path, packed))


def test_many_problems_are_counted(tmp_path: Path) -> None:
    others = len(checkpoints.tiny_tensors()) - 1 - 8
    with pytest.raises(UsageError, match=f"; and {others} more"):
        load(checkpoints.write(tmp_path, {"model.text.wte": torch.zeros(512, 128)}))


def test_files_that_are_no_weights(tmp_path: Path) -> None:
    folder = checkpoints.write(tmp_path, checkpoints.tiny_tensors())
    with (folder / "model.safetensors").open("wb") as file:
        pickle.dump({"model.text.wte": [0.0]}, file)
    with pytest.raises(UsageError, match="not a readable safetensors file"):
        load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="holds neither"):
        load(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../elsewhere.safetensors"}}))
    with pytest.raises(UsageError, match="names the shard"):
        load(folder)


@pytest.mark.parametrize(
    ("path", "revision", "message"),
    [
        ("models/nowhere/at/all", None, "there is no folder models/nowhere/at/all"),
        ("./nowhere", None, r"there is no folder \./nowhere"),
        ("org/model", None, "pin it: model.revision takes a commit or tag"),
        ("photon://large", None, "photon://large does not ship with photon-batch"),
    ],
)
def test_models_that_are_not_there(path: str, revision: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model(path, revision=revision, device=torch.device("cpu"), dtype=torch.float32)
