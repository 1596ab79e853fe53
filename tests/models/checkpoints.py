"""The tiny checkpoint, written again in the other ways that checkpoints come."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.reference import TINY

GROUP = 128
_INT4 = re.compile(r"^model\.(text\.blocks\.\d+\.(attn|mlp)\.\w+|region\.\w+_(encoder|decoder)(\.fc\d)?)\.weight$")
_TRAINING = [
    ("model.vision.patch_emb.", "vision_encoder.encoder.model.visual.patch_embed.linear."),
    ("model.vision.pos_emb", "vision_encoder.encoder.model.visual.pos_embed"),
    ("model.vision.post_ln.", "vision_encoder.encoder.model.visual.norm."),
    ("model.vision.proj_mlp.", "vision_encoder.projection.mlp."),
    ("model.vision.blocks.", "vision_encoder.encoder.model.visual.blocks."),
    ("model.text.wte", "text_model.transformer.embd.wte.weight"),
    ("model.text.post_ln.", "text_model.lm_head.ln."),
    ("model.text.lm_head.", "text_model.lm_head.linear."),
    ("model.text.blocks.", "text_model.transformer.h."),
    ("model.region.coord_features", "region_model.coordinate_features.weight"),
    ("model.region.size_features", "region_model.size_features.weight"),
    ("model.region.coord_", "region_model.coordinate_"),
    ("model.region.size_", "region_model.size_"),
]
_INNER = (
    [(".ln1.", ".norm1."), (".ln2.", ".norm2.")],
    [(".attn.qkv.", ".mixer.Wqkv."), (".attn.proj.", ".mixer.out_proj.")],
)


def tiny_tensors() -> dict[str, Tensor]:
    return load_file(TINY / "model.safetensors")


def write(folder: Path, tensors: dict[str, Tensor]) -> Path:
    """A checkpoint folder with the tiny model's config and tokenizer around ``tensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(TINY / name, folder)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors")
    return folder


def write_sharded(folder: Path, tensors: dict[str, Tensor]) -> Path:
    write(folder, tensors)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for shard, members in shards.items():
        save_file({k: tensors[k].contiguous() for k in members}, folder / shard)
    index = {"metadata": {}, "weight_map": {k: shard for shard, members in shards.items() for k in members}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def in_training_names(tensors: dict[str, Tensor], infix: str = "") -> dict[str, Tensor]:
    """``infix``: what torch.compile leaves in names ("._orig_mod")."""
    out = {}
    for name, tensor in tensors.items():
        start, new = next((a, b) for a, b in _TRAINING if name.startswith(a))
        renamed = new + name[len(start) :]
        for a, b in _INNER["text_model" in renamed]:
            renamed = renamed.replace(a, b)
        if renamed.endswith("_features.weight"):
            tensor = tensor.T
        head, _, tail = renamed.partition(".")
        out[f"{head}{infix}.{tail}"] = tensor
    return out


def in_int4(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(the packed checkpoint, the same with what the packed tensors decode to)."""
    packed, plain = {}, {}
    for name, tensor in tensors.items():
        if not _INT4.match(name):
            packed[name] = plain[name] = tensor
            continue
        groups = tensor.float().reshape(-1, GROUP)
        low, high = groups.min(1, keepdim=True).values, groups.max(1, keepdim=True).values
        scale = ((high - low) / 15).clamp_min(1e-8).bfloat16()
        zero = (-low / scale.float()).round().clamp(0, 15).bfloat16()
        codes = (groups / scale.float() + zero.float()).round().clamp(0, 15).to(torch.uint8)
        half = len(codes) // 2
        packed[f"{name}.packed"] = codes[:half] << 4 | codes[half:]
        packed[f"{name}.scale"], packed[f"{name}.zero_point"] = scale, zero
        plain[name] = ((codes.float() - zero.float()) * scale.float()).bfloat16().reshape(tensor.shape)
    return packed, plain
