"""Adapter files, and a text model with adapters against the reference's hidden states, keys and logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from photon.device.threads import ThreadDevice
from photon.engine.adapters import AdapterBank
from photon.engine.layout import prefill_layout
from photon.engine.slots import upload
from photon.errors import UsageError
from photon.models.load import LoadedModel, load_model
from photon.models.lora import MATRICES, read_adapter, shapes
from tests.models.test_text import PAGE, Paged
from tests.reference import ADAPTER, assert_close, every

DETECT_CAT = [1, 427, 2, 307, 3]


def stored() -> dict[str, Tensor]:
    return load_file(ADAPTER)


def named(layer: int, matrix: str, leaf: str) -> str:
    """The tensor's name in the file."""
    inner = {"attn.qkv": "mixer.Wqkv", "attn.proj": "mixer.out_proj"}.get(matrix, matrix)
    return f"text_model.transformer.h.{layer}.{inner}.parametrizations.weight.0.{leaf}"


def write(path: Path, tensors: dict[str, Any]) -> Path:
    """As the file's suffix says."""
    if path.suffix == ".pt":
        torch.save(tensors, path)
    else:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    return path


@pytest.fixture(scope="module")
def config() -> Any:
    return load_model("photon://tiny", device=torch.device("cpu"), dtype=torch.float32).model.config.text


def same(a: Path, b: Path, config: Any) -> bool:
    one, two = read_adapter(a, config), read_adapter(b, config)
    return one.rank == two.rank and all(
        torch.equal(one.down[m], two.down[m]) and torch.equal(one.up[m], two.up[m]) for m in MATRICES
    )


def test_every_naming_and_both_formats_are_the_same_adapter(config: Any, tmp_path: Path) -> None:
    ours = {
        f"text.blocks.{n}.{m}.{leaf}": stored()[named(n, m, leaf)] for n in range(3) for m in MATRICES for leaf in "AB"
    }
    compiled = {name.replace("transformer.h.", "transformer._orig_mod.h."): t for name, t in stored().items()}
    files = [
        write(tmp_path / "raw.pt", stored()),
        write(tmp_path / "ours.safetensors", ours),
        write(tmp_path / "hub.pt", {f"model.{name}": tensor for name, tensor in ours.items()}),
        write(tmp_path / "compiled.safetensors", compiled),
    ]
    assert all(same(ADAPTER, file, config) for file in files)
    digests = {read_adapter(file, config).digest for file in (ADAPTER, *files)}
    assert len(digests) == 5
    assert all(len(digest) == 16 for digest in digests)


def test_ranks_may_differ_between_matrices(config: Any, tmp_path: Path) -> None:
    tensors = stored()
    for leaf, axis in (("A", 0), ("B", 1)):
        tensors[named(1, "mlp.fc1", leaf)] = tensors[named(1, "mlp.fc1", leaf)].narrow(axis, 0, 2)
    adapter = read_adapter(write(tmp_path / "a.safetensors", tensors), config)
    assert adapter.rank == 4
    assert adapter.down["mlp.fc1"][1].abs().sum(1).ne(0).tolist() == [True, True, False, False]
    assert adapter.down["mlp.fc1"].shape == (3, 4, 128)
    assert adapter.up["mlp.fc1"].shape == (3, 4, 512)


class Code:
    """What a pickle may hold beside tensors."""

    def __reduce__(self) -> Any:
        return print, ("run",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({(2, "attn.proj", "B"): None}, r"text\.blocks\.2\.attn\.proj\.B \[128, rank\] is missing$"),
        ({(0, "mlp.fc2", "A"): torch.zeros(4, 128)}, r"text\.blocks\.0\.mlp\.fc2\.A is \[4, 128\], not \[rank, 512\]$"),
        ({(0, "mlp.fc1", "A"): torch.zeros(3, 128)}, r"text\.blocks\.0\.mlp\.fc1 has A of rank 3 and B of rank 4$"),
        ({(3, "mlp.fc1", "A"): torch.zeros(4, 128)}, r"text\.blocks\.3\.mlp\.fc1\.A is surplus$"),
        ({(1, "attn.gate", "A"): torch.zeros(4, 128)}, r"text\.blocks\.1\.attn\.gate\.A is surplus$"),
        ({(1, "mlp.fc1", "B"): torch.full((512, 4), torch.nan)}, r"text\.blocks\.1\.mlp\.fc1\.B holds values that are"),
        ({(n, m, "A"): None for n in range(3) for m in MATRICES}, r"mlp\.fc2\.A \[rank, 512\] is missing; and 4 more$"),
    ],
)
def test_tensors_that_do_not_fit(changes: Any, message: str, config: Any, tmp_path: Path) -> None:
    tensors = stored()
    for place, tensor in changes.items():
        if tensor is None:
            del tensors[named(*place)]
        else:
            tensors[named(*place)] = tensor
    path = write(tmp_path / "a.safetensors", tensors)
    with pytest.raises(UsageError, match=rf"a\.safetensors: this adapter does not fit the model: .*{message}"):
        read_adapter(path, config)


def test_files_that_are_no_adapters(config: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "noise.pt").write_bytes(b"noise")
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "noise.safetensors").write_bytes(b"noise")
    twice = {**stored(), "text.blocks.0.mlp.fc1.A": torch.zeros(4, 128)}
    cases: list[tuple[Path, str]] = [
        (tmp_path / "none.pt", "there is no such file"),
        (tmp_path, r"there is no such file; an adapter is one file, \.safetensors or \.pt"),
        (Path(__file__), r"an adapter is a file whose name ends in \.safetensors or \.pt"),
        (tmp_path / "noise.pt", "holds more than tensors, or is no .pt file"),
        (tmp_path / "empty.pt", r"not readable as \.pt"),
        (tmp_path / "noise.safetensors", r"not readable as \.safetensors"),
        (write(tmp_path / "code.pt", {"a": Code()}), "holds more than tensors"),
        (write(tmp_path / "list.pt", [torch.zeros(1)]), "holds no tensors by name"),  # type: ignore[arg-type]
        (write(tmp_path / "deep.pt", {"state": stored()}), "state is no tensor"),
        (write(tmp_path / "twice.safetensors", twice), r"holds this tensor twice under different names"),
    ]
    for path, message in cases:
        with pytest.raises(UsageError, match=f"{path.name}: .*{message}"):
            read_adapter(path, config)
    assert capsys.readouterr().out == "", "no code was run"


@torch.inference_mode()
@pytest.mark.parametrize("slot", [1, 2])
@pytest.mark.parametrize("merged", [False, True])
def test_prefix_and_prompt(tiny: LoadedModel, slot: int, merged: bool) -> None:
    """Beside another adapter, whose weights come to nothing."""
    paged = Paged(tiny, "noise_160x200")
    hidden = prefilled(paged, slot, merged)
    logits = paged.model.text.logits(hidden[-1:])
    if merged:
        assert_close(logits, "lora.merged.detect.prefill_logits")
    else:
        assert_close(hidden, "lora.detect.prefill_hidden")
        assert_close(logits, "lora.detect.prefill_logits")
        assert_close(every(paged.stored(paged.pool.keys[2]), 10, 1), "lora.kcache_l2_s10")


@torch.inference_mode()
def test_merged_is_what_merged_weights_compute(tiny: LoadedModel) -> None:
    hidden = prefilled(Paged(tiny, "noise_160x200"), 1, merged=True)
    other = load_model("photon://tiny", device=torch.device("cpu"), dtype=torch.float32)
    adapter = read_adapter(ADAPTER, other.model.config.text)
    for n in range(3):
        for matrix in shapes(other.model.config.text):
            weight = other.model.get_submodule(f"text.blocks.{n}.{matrix}").weight
            assert isinstance(weight, Tensor)
            weight += adapter.up[matrix][n].T @ adapter.down[matrix][n]
    _, merged = Paged(other, "noise_160x200").prefill(other.model.embed(torch.tensor(DETECT_CAT)))
    assert (hidden - merged).abs().max() < 1e-4 * merged.abs().max()


def prefilled(paged: Paged, slot: int, merged: bool) -> Tensor:
    """Hidden states of a prompt behind its image, both with the reference's adapter in ``slot`` of two."""
    adapter, device = read_adapter(ADAPTER, paged.model.config.text), ThreadDevice()
    bank = AdapterBank(
        {"other": adapter, "this": adapter}, slots=2, merged=merged, config=paged.model.config.text, device=device,
        dtype=torch.float32,
    )  # fmt: skip
    device.close()
    bank.load([(3 - slot, "other"), (slot, "this")])
    for tensor in bank.buffers:
        tensor[:, 2 - slot] *= 3
    paged.table.adapter[paged.row] = paged.table.prefix_adapter[paged.prefix] = slot
    paged.table.adapted = 1
    prompt = paged.model.embed(torch.tensor(DETECT_CAT))
    layout = prefill_layout(
        paged.arena, paged.table, [paged.prefix], np.array([paged.row]), np.array([len(prompt)]),
        prefix_len=paged.prefix_len, page_size=PAGE,
    )  # fmt: skip
    upload(paged.arena).run()
    assert layout.adapters is not None
    x = torch.cat((paged.image, prompt))
    return paged.model.text(x, paged.pool, layout, bank.deltas(layout.adapters))[paged.prefix_len :]
