"""The outputs of the public reference implementation on a tiny seeded model, and what tests compare with them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from safetensors.torch import load_file

import photon
from photon.core import Request, Result
from photon.models.config import VisionConfig
from photon.models.tiling import crop_count, cut_crops, select_tiling

FOLDER = Path(__file__).parent / "goldens"
TINY = Path(photon.__file__).parent / "assets" / "tiny"
IMAGES = ("noise_160x200", "china_427x640", "tall_980x420", "big_1200x1600")
QUESTION = "what is this?"
ADAPTER = FOLDER / "tiny_md2_lora.safetensors"
TOLERANCE = 2e-4  # of the largest value; see goldens' own notes


@cache
def outputs() -> dict[str, Any]:
    return json.loads((FOLDER / "md2_outputs.json").read_text())


@cache
def tensors() -> dict[str, torch.Tensor]:
    return load_file(FOLDER / "md2_outputs.safetensors")


@cache
def preprocessing() -> dict[str, Any]:
    return json.loads((FOLDER / "preprocess.json").read_text())


def picture(name: str) -> PIL.Image.Image:
    return PIL.Image.open(FOLDER / "images" / f"{name}.png").convert("RGB")


def crops(name: str, vision: VisionConfig) -> tuple[torch.Tensor, tuple[int, int]]:
    """The picture's crops uint8 [n, side, side, 3], and its tiling."""
    image = picture(name)
    tiling = select_tiling(image.height, image.width, vision)
    pixels = np.empty((crop_count(tiling), vision.crop_size, vision.crop_size, 3), np.uint8)
    cut_crops(image, tiling, vision, pixels)
    return torch.from_numpy(pixels), tiling


def assert_close(ours: torch.Tensor, name: str) -> None:
    """Largest difference at most TOLERANCE of the largest reference value."""
    reference = tensors()[name]
    assert ours.shape == reference.shape, (name, ours.shape, reference.shape)
    error = (ours.float() - reference).abs().max().item()
    assert error <= TOLERANCE * reference.abs().max().item(), f"{name}: off by {error:.2e}"


def requests(shared: bool = True) -> dict[Any, tuple[Request, dict[str, Any]]]:
    """Every request that the reference answered, with its answer, by id. Not ``shared``: each has its own image."""
    asked: dict[Any, tuple[Request, dict[str, Any]]] = {}

    def ask(id: Any, image: photon.Image | None, skill: Any, prompt: str | None, answer: Any, **settings: Any) -> None:
        if image is not None and not shared:
            image = photon.Image(image.source)
        asked[id] = (Request(id, image, skill, prompt, **settings), answer)

    for name in IMAGES:
        image = photon.Image(FOLDER / "images" / f"{name}.png")
        runs = outputs()["images"][name]["runs"]
        for skill in ("detect", "point"):
            run = runs[skill]
            ask((name, skill), image, skill, run["object"], run["result"], max_objects=run["max_objects"])
        ask((name, "query"), image, "query", QUESTION, runs["query"], max_tokens=8)
        ask((name, "caption"), image, "caption", None, runs["caption_short"], length="short", max_tokens=8)
        refs = runs["query_spatial"]["spatial_refs"]
        ask((name, "spatial"), image, "query", QUESTION, runs["query_spatial"], spatial_refs=refs, max_tokens=8)
        if "reasoning" in runs["query_reasoning"]:  # the reference crashed on the other
            ask((name, "reasoning"), image, "query", QUESTION, runs["query_reasoning"], reasoning=True, max_tokens=24)
    ask("no image", None, "query", QUESTION, outputs()["query_no_image"], max_tokens=8)
    return asked


def adapted(merged: bool, adapter: str) -> dict[Any, tuple[Request, dict[str, Any]]]:
    """The requests that the reference answered with its adapter, as it reads adapters or from merged weights."""
    asked = {}
    for name in IMAGES:
        answer = outputs()["lora"]["images"][name]["detect_merged_weights" if merged else "detect"]
        image = photon.Image(FOLDER / "images" / f"{name}.png")
        asked[name, adapter] = Request((name, adapter), image, "detect", "cat", max_objects=3, adapter=adapter), answer
    return asked


def assert_same(result: Result, answer: dict[str, Any]) -> None:
    """The result equals the reference's answer: exactly, coordinates bit for bit."""
    assert result.error is None, (result.id, result.error)
    if "objects" in answer:
        keys = ("x_min", "y_min", "x_max", "y_max")
        assert [{k: getattr(box, k) for k in keys} for box in result.objects or ()] == answer["objects"], result.id
    elif "points" in answer:
        assert [{"x": p.x, "y": p.y} for p in result.points or ()] == answer["points"], result.id
    elif "reasoning" in answer:
        assert result.reasoning is not None
        grounding = [
            {"start_idx": g.start, "end_idx": g.end, "points": [list(p) for p in g.points]}
            for g in result.reasoning.grounding
        ]
        assert {"text": result.reasoning.text, "grounding": grounding} == answer["reasoning"], result.id
        assert result.text == answer["answer"], result.id
    else:
        text = next(answer[k] for k in ("text", "caption", "answer") if k in answer)
        assert result.text == text, result.id
        if "tokens" in answer:
            assert list(result.token_ids) == answer["tokens"], result.id


def every(tensor: torch.Tensor | np.ndarray, n: int, *axes: int) -> Any:
    """Every n-th entry along the axes, as the goldens store large tensors."""
    index = [slice(None)] * tensor.ndim
    for axis in axes:
        index[axis] = slice(None, None, n)
    return tensor[tuple(index)]
