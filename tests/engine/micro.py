"""A Moondream of a few thousand seeded random weights: all of the real code, a millisecond a step."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import PIL.Image
import torch

import photon
from photon.core import Request, Result
from photon.device.device import Device
from photon.device.threads import ThreadDevice
from photon.device.virtual import VirtualDevice
from photon.engine.adapters import AdapterBank
from photon.engine.engine import Engine
from photon.engine.sizes import Sizes, choose_sizes
from photon.images.decode import DecodePolicy
from photon.models.config import MoondreamConfig, TokenConfig
from photon.models.load import LoadedModel
from photon.models.lora import Adapter, shapes
from photon.models.moondream import Moondream
from photon.models.tokenizer import Tokenizer
from tests.reference import TINY

CONFIG = {
    "vision": {
        "enc_dim": 8, "enc_n_layers": 1, "enc_ff_dim": 8, "enc_n_heads": 2, "proj_out_dim": 16, "proj_inner_dim": 16,
        "crop_size": 42, "max_crops": 4, "overlap_margin": 1,
    },
    "text": {"dim": 16, "ff_dim": 32, "n_layers": 2, "vocab_size": 512, "max_context": 160, "n_heads": 2},
    "region": {
        "dim": 16, "coord_feat_dim": 8, "coord_out_dim": 64, "size_feat_dim": 8, "size_out_dim": 128, "inner_dim": 16,
    },
}  # fmt: skip


@cache
def loaded() -> LoadedModel:
    config = MoondreamConfig.from_dict(CONFIG)
    model = Moondream(config)
    generator = torch.Generator().manual_seed(3)
    for name, tensor in model.state_dict().items():
        owner, _, leaf = name.rpartition(".")
        scale = 3.0 if "features" in leaf else 0.6
        values = torch.randn(tensor.shape, generator=generator) * scale
        if "ln" in owner.rpartition(".")[2]:
            values = torch.ones(tensor.shape) if leaf == "weight" else torch.zeros(tensor.shape)
        if name == "text.lm_head.bias":
            values[0] += 7.0  # ends are not rare
        setattr(model.get_submodule(owner), leaf, torch.nn.Parameter(values, requires_grad=False))
    templates = {
        "caption": {"short": [1, 20, 3], "normal": [1, 21, 3], "long": [1, 22, 3]},
        "query": {"prefix": [1, 23, 2], "suffix": [3]},
        "detect": {"prefix": [1, 24, 2], "suffix": [3]},
        "point": {"prefix": [1, 25, 2], "suffix": [3]},
    }
    return LoadedModel(model, TokenConfig(templates=templates), Tokenizer.load(TINY), "micro", meaningless=True)


ADAPTERS = ("one", "two", "three")


@cache
def adapters() -> dict[str, Adapter]:
    """Random ones that change most answers, of ranks 1, 2 and 3."""
    made, config = {}, loaded().model.config.text
    for rank, name in enumerate(ADAPTERS, 1):
        dice = torch.Generator().manual_seed(rank)
        down, up = {}, {}
        for matrix, (inputs, outputs) in shapes(config).items():
            down[matrix] = 0.5 * torch.randn(config.n_layers, rank, inputs, generator=dice)
            up[matrix] = 0.5 * torch.randn(config.n_layers, rank, outputs, generator=dice)
        made[name] = Adapter(down, up, rank, name)
    return made


def sizes(max_batch: int = 4, **changes: Any) -> Sizes:
    chosen = choose_sizes(
        loaded().model.config,
        max_batch=max_batch,
        device_type="cpu",
        free_bytes=1 << 30,
        itemsize=4,
        memory_fraction=0.9,
    )
    return replace(chosen, **{"vision_crops": chosen.picture_crops, **changes})  # so that two pictures take two steps


def engine(
    device: Device,
    *,
    depth: int = 2,
    decision: Any = "reference",
    adapter_slots: int = 0,
    graphs: bool = False,
    **changes: Any,
) -> Engine:
    """With ``adapter_slots``, all of ``adapters`` are loaded, to be read as the reference does where that decides."""
    chosen, bank = sizes(**changes), None
    if adapter_slots:
        chosen = replace(chosen, embeddings=changes.get("embeddings", 2 * chosen.max_batch))
        options: Any = {"config": loaded().model.config.text, "device": device, "dtype": torch.float32}
        bank = AdapterBank(adapters(), slots=adapter_slots, merged=decision != "reference", **options)
    rest: Any = {"depth": depth, "decision": decision, "stop_repetition": False, "policy": DecodePolicy()}
    return Engine(loaded(), device, chosen, **rest, bank=bank, graphs=graphs)


def checked(device: VirtualDevice, **options: Any) -> Engine:
    """``engine`` on a device that orders accesses page by page and refuses memory from here on."""
    made = engine(device, **options)
    device.order_by_pages(made._forward._pool.keys, made._forward._pool.values)
    device.seal()
    return made


@cache
def image(number: int) -> photon.Image:
    """Small pictures of one, two and four tiles, the same ones in every process (Pillow's own noise has no seed)."""
    width, height = ((30, 30), (60, 45), (90, 90), (45, 120))[number % 4]
    noise = np.random.default_rng(number).normal(128, 40 + 10 * number, (height, width, 1))
    return photon.Image(PIL.Image.fromarray(noise.clip(0, 255).astype(np.uint8).repeat(3, axis=2)))


@cache
def _blocking(adapter_slots: int) -> Engine:
    return engine(ThreadDevice(), depth=1, max_batch=1, adapter_slots=adapter_slots)


@cache
def alone(skill: str, picture: int | None, seed: int, adapter: str | None = None) -> tuple[Any, ...]:
    """The answer of a blocking engine that is asked nothing else, and without an adapter has none; see ``request``."""
    (result,) = _blocking(0 if adapter is None else 1).run([request(0, skill, picture, seed, adapter)])
    return answer(result)


def answer(result: Result) -> tuple[Any, ...]:
    """What must not depend on the batch, the depth or the order."""
    boxes = [(b.x_min, b.y_min, b.x_max, b.y_max) for b in result.objects or ()]
    points = [(p.x, p.y) for p in result.points or ()]
    return result.text, boxes, points, list(result.token_ids), result.finish_reason, result.error


def request(id: object, skill: Any, picture: int | None, seed: int, adapter: str | None = None) -> Request:
    """A request whose wording and caps follow from ``seed``."""
    dice = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:4], "big")
    prompt = f"{'what a thing is this ' * (dice % 3)}{dice % 17}"
    about = None if picture is None else image(picture)
    settings: dict[str, Any] = {"max_objects": 1 + dice % 5} if skill in ("detect", "point") else {}
    if skill in ("query", "caption"):
        settings = {"max_tokens": 1 + dice % 9, "temperature": (0.0, 1.0)[dice % 2], "top_p": 0.9, "seed": dice % 5}
    if skill == "query":
        settings["reasoning"] = picture is not None and dice % 3 == 0
    return Request(id, about, skill, prompt, adapter=adapter, **settings)
