"""The text part over paged memory against the reference's hidden states, keys, values and logits."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from photon.device.threads import ThreadDevice
from photon.engine.layout import decode_layout, prefill_layout
from photon.engine.rows import RowTable
from photon.engine.slots import Arena, upload
from photon.kernels.paged import KVPool
from photon.models.load import LoadedModel
from photon.models.moondream import COORDINATE, SIZE, TOKEN
from tests.reference import IMAGES, assert_close, crops, every, outputs, tensors

PAGE = 16


class Paged:
    """One image prefix and one row over it, driven by hand."""

    def __init__(self, tiny: LoadedModel, name: str) -> None:
        self.model = tiny.model
        config = tiny.model.config
        self.prefix_len = config.prefix_len
        self.n_prefix = -(-self.prefix_len // PAGE)
        text = config.text
        device = ThreadDevice()
        shape = (text.n_layers, text.kv_heads, self.n_prefix + 9, PAGE, text.head_dim)
        self.pool = KVPool(torch.zeros(shape), torch.zeros(shape))
        self.table = RowTable(1, 1, 8, self.n_prefix, device)
        self.prefix = self.table.acquire_prefix(list(range(1, self.n_prefix + 1)))
        pages = list(range(self.n_prefix + 1, self.n_prefix + 9))
        self.row = self.table.acquire_row(base=self.prefix_len, prefix=self.prefix, pages=pages)
        pixels, tiling = crops(name, config.vision)
        image_tokens = self.model.vision(pixels, [tiling])
        self.image = self.model.prefix(0, image_tokens)
        self.arena = Arena(device, 20_000, torch.int64)
        device.close()

    def prefill(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
        """Prefix and prompt embeddings [n, dim] in one pass: their hidden states."""
        self.arena.clear()
        layout = prefill_layout(
            self.arena, self.table, [self.prefix], np.array([self.row]), np.array([len(prompt)]),
            prefix_len=self.prefix_len, page_size=PAGE,
        )  # fmt: skip
        upload(self.arena).run()
        hidden = self.model.text(torch.cat((self.image, prompt)), self.pool, layout)
        return hidden[: self.prefix_len], hidden[self.prefix_len :]

    def step(self, embedding: Tensor) -> Tensor:
        self.arena.clear()
        layout = decode_layout(self.arena, self.table, np.array([self.row]), prefix_len=self.prefix_len, page_size=PAGE)
        upload(self.arena).run()
        return self.model.text(embedding, self.pool, layout)

    def stored(self, pool: Tensor) -> Tensor:
        """Keys or values of the prefix in one layer, [heads, positions, dim]."""
        return pool[:, 1 : self.n_prefix + 1].flatten(1, 2)[:, : self.prefix_len]


@torch.inference_mode()
@pytest.mark.parametrize("name", IMAGES)
def test_prefix(tiny: LoadedModel, name: str) -> None:
    paged = Paged(tiny, name)
    prefix, _ = paged.prefill(paged.model.embed(torch.tensor([1, 427, 2, 307, 3])))
    if name == "noise_160x200":
        assert_close(prefix, f"{name}.prefix_hidden")
        for layer in (0, 2):
            assert_close(every(paged.stored(paged.pool.keys[layer]), 10, 1), f"{name}.kcache_l{layer}_s10")
            assert_close(every(paged.stored(paged.pool.values[layer]), 10, 1), f"{name}.vcache_l{layer}_s10")
    else:
        assert_close(every(prefix, 10, 0), f"{name}.prefix_hidden_s10")


@torch.inference_mode()
@pytest.mark.parametrize("name", IMAGES)
def test_query_prefill_and_step_logits(tiny: LoadedModel, name: str) -> None:
    """Fed the reference's own tokens, every step's logits agree."""
    run = outputs()["images"][name]["runs"]["query"]
    paged = Paged(tiny, name)
    prompt = paged.model.embed(torch.tensor(run["prompt_ids"]))
    _, hidden = paged.prefill(prompt)
    logits = paged.model.text.logits(hidden[-1:])
    assert logits.argmax().item() == (run["tokens"] + [run["next_token"]])[0]
    steps = [paged.step(paged.model.embed(torch.tensor([token]))) for token in run["tokens"]]
    assert_close(paged.model.text.logits(torch.cat(steps)), f"{name}.query.step_logits")
    if name == "noise_160x200":
        assert_close(prompt, f"{name}.query.prompt_emb")
        assert_close(hidden, f"{name}.query.prefill_hidden")
        assert_close(logits, f"{name}.query.prefill_logits")
        assert_close(torch.cat(steps), f"{name}.query.step_hidden")


@torch.inference_mode()
@pytest.mark.parametrize("skill", ["detect", "point"])
def test_object_steps(tiny: LoadedModel, skill: str) -> None:
    """Fed the reference's own bins, every embedding, hidden state and head agrees."""
    name = f"noise_160x200.{skill}"
    run = outputs()["images"]["noise_160x200"]["runs"][skill]
    paged = Paged(tiny, "noise_160x200")
    region = paged.model.region
    prompt = paged.model.embed(torch.tensor(run["prompt_ids"]))
    _, hidden = paged.prefill(prompt)
    assert_close(prompt, f"{name}.prompt_emb")
    assert_close(hidden, f"{name}.prefill_hidden")
    assert_close(paged.model.text.logits(hidden[-1:]), f"{name}.prefill_logits")
    fed, states, coordinates, sizes = [], [], [], []
    state = hidden[-1:]
    for step in run["steps"]:
        for axis in ("x", "y"):
            coordinates.append(region.coordinate_logits(state))
            fed.append(embed_one(tiny, COORDINATE, step[f"{axis}_bin"] / 1024, 0.0))
            state = paged.step(fed[-1])
            states.append(state)
        if skill == "detect":
            sizes.append(region.size_logits(state))
            width, height = (2.0 ** (step[f"{side}_bin"] / 1023 * 10 - 10) for side in "wh")
            fed.append(embed_one(tiny, SIZE, width, height))
            state = paged.step(fed[-1])
            states.append(state)
    assert_close(torch.cat(fed), f"{name}.decode_input_emb")
    assert_close(torch.cat(states), f"{name}.decode_hidden")
    assert_close(paged.model.text.logits(torch.cat(states)), f"{name}.decode_logits")
    assert_close(torch.cat(coordinates), f"{name}.coord_logits")
    assert tensors()[f"{name}.coord_logits"].argmax(-1).tolist() == torch.cat(coordinates).argmax(-1).tolist()
    if skill == "detect":
        assert_close(torch.cat(sizes), f"{name}.size_logits")


def embed_one(tiny: LoadedModel, kind: int, first: float, second: float) -> Tensor:
    assert kind != TOKEN
    return tiny.model.embed(torch.tensor([0]), torch.tensor([kind]), torch.tensor([[first, second]]))


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_of_some_ids_are_those_of_all(tiny: LoadedModel, dtype: torch.dtype) -> None:
    text = copy.deepcopy(tiny.model.text).to(dtype)
    hidden = torch.randn(3, text.config.dim, generator=torch.Generator().manual_seed(0)).to(dtype)
    ids = torch.tensor([5, 0, 511])
    some = text.logits(hidden, ids)
    assert some.dtype == torch.float32
    torch.testing.assert_close(
        some, text.logits(hidden)[:, ids].float(), rtol=2**-7, atol=1e-2 if dtype != torch.float32 else 1e-5
    )
