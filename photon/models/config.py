"""The shape of a Moondream 2 model, read from its ``config.json``.

Section and key names are the checkpoint's own, missing keys take the 2B model's values (Moondream 2 model notes,
"Configurations"). Does not read weights or vocabularies.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from photon.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VisionConfig:
    """Vision encoder and tiling; sizes in pixels, ``overlap_margin`` in patches."""

    enc_dim: int = 1152
    enc_patch_size: int = 14
    enc_n_layers: int = 27
    enc_ff_dim: int = 4304
    enc_n_heads: int = 16
    proj_out_dim: int = 2048
    crop_size: int = 378
    in_channels: int = 3
    max_crops: int = 12
    overlap_margin: int = 4
    proj_inner_dim: int = 8192

    @property
    def grid(self) -> int:
        """Patches along one side of a crop."""
        return self.crop_size // self.enc_patch_size

    @property
    def window(self) -> int:
        """Pixels that a local crop adds beside its overlap with its neighbours."""
        return (self.grid - 2 * self.overlap_margin) * self.enc_patch_size

    @property
    def margin(self) -> int:
        """Pixels of overlap along one axis, both sides together."""
        return 2 * self.overlap_margin * self.enc_patch_size


@dataclass(frozen=True, slots=True)
class TextConfig:
    dim: int = 2048
    ff_dim: int = 8192
    n_layers: int = 24
    vocab_size: int = 51200
    max_context: int = 2048
    n_heads: int = 32
    n_kv_heads: int | None = None  # published files leave it out where it equals n_heads
    prefix_attn: int | None = None  # follows from the grid; checked where a file states it
    group_size: int | None = None  # a note about int4 files; the file itself says which tensors are packed

    @property
    def kv_heads(self) -> int:
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads

    @property
    def rotary_dim(self) -> int:
        """Dimensions of a head that RoPE turns: the first half."""
        return self.head_dim // 2


@dataclass(frozen=True, slots=True)
class RegionConfig:
    dim: int = 2048
    coord_feat_dim: int = 256
    coord_out_dim: int = 1024
    size_feat_dim: int = 512
    size_out_dim: int = 2048
    inner_dim: int = 8192
    group_size: int | None = None


Template = dict[str, list[int]]

# The two token generations of the published checkpoints, for files that do not spell their templates out.
STARMIE_TEMPLATES: dict[str, Template | None] = {
    "caption": {"short": [1, 32708, 2, 12492, 3], "normal": [1, 32708, 2, 6382, 3], "long": [1, 32708, 2, 4059, 3]},
    "query": {"prefix": [1, 15381, 2], "suffix": [3]},
    "detect": {"prefix": [1, 7235, 476, 2], "suffix": [3]},
    "point": {"prefix": [1, 2581, 2], "suffix": [3]},
}
CODEGEN_TEMPLATES: dict[str, Template | None] = {
    "caption": {
        "short": [198, 198, 16438, 8305, 25],
        "normal": [198, 198, 24334, 1159, 25],
        "long": [198, 198, 14617, 8305, 25],
    },
    "query": {"prefix": [198, 198, 24361, 25], "suffix": [198, 198, 33706, 25]},
    "detect": {"prefix": [198, 198, 47504, 25], "suffix": [628]},
    "point": {"prefix": [198, 198, 12727, 25], "suffix": [628]},
}


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """Special ids and prompt templates. Ids 3 to 9 have a role only in the current generation (``grounded``)."""

    bos_id: int = 0
    eos_id: int = 0
    answer_id: int = 3
    thinking_id: int = 4
    coord_id: int = 5
    size_id: int = 6
    start_ground_points_id: int = 7
    end_ground_id: int = 9
    templates: dict[str, Template | None] = field(default_factory=lambda: dict(STARMIE_TEMPLATES))

    @property
    def grounded(self) -> bool:
        """Whether the special ids for answers, coordinates and sizes exist (checkpoints from June 2025 on)."""
        return any(self.answer_id in ids for t in self.templates.values() if t for ids in t.values())

    @property
    def highest_id(self) -> int:
        """Of the ends and the templates, and of the special ids where they have a role."""
        ids = [i for t in self.templates.values() if t for part in t.values() for i in part]
        special = (self.answer_id, self.thinking_id, self.coord_id, self.size_id) if self.grounded else ()
        return max(self.bos_id, self.eos_id, *special, *ids)

    @classmethod
    def codegen(cls) -> TokenConfig:
        """The generation up to April 2025: GPT-2 ids, templates in plain words."""
        return cls(bos_id=50256, eos_id=50256, templates=dict(CODEGEN_TEMPLATES))


@dataclass(frozen=True, slots=True)
class MoondreamConfig:
    vision: VisionConfig = field(default_factory=VisionConfig)
    text: TextConfig = field(default_factory=TextConfig)
    region: RegionConfig = field(default_factory=RegionConfig)
    tokens: TokenConfig | None = field(default_factory=TokenConfig)  # None: the file leaves it to the vocabulary

    @property
    def prefix_len(self) -> int:
        """Positions of an image prefix: BOS and one per patch of the grid."""
        return 1 + self.vision.grid**2

    @classmethod
    def read(cls, path: Path) -> MoondreamConfig:
        """Read ``config.json``, in the layout of the hub (everything under "config") or of the repository.

        Raises ``UsageError`` naming file and key for anything that cannot be a Moondream 2 configuration.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"{path}: no such file; a model folder holds config.json beside its weights") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: not readable as JSON: {error}") from None
        if not isinstance(raw, dict):
            raise UsageError(f"{path}: expected a JSON object")
        return cls.from_dict(raw.get("config", raw) if isinstance(raw.get("config"), dict) else raw, str(path))

    @classmethod
    def from_dict(cls, raw: dict[str, Any], where: str = "config") -> MoondreamConfig:
        """Build and check. ``where`` opens every error message."""
        if isinstance(raw.get("text"), dict) and raw["text"].get("moe"):
            raise UsageError(f"{where}: text.moe: this is a Moondream 3 model; Moondream 2 models are supported")
        config = cls(
            vision=_section(VisionConfig, raw, "vision", where),
            text=_section(TextConfig, raw, "text", where),
            region=_section(RegionConfig, raw, "region", where),
            tokens=_section(TokenConfig, raw, "tokenizer", where) if raw.get("tokenizer") else None,
        )
        config._check(where)
        return config

    def _check(self, where: str) -> None:
        vision, text, region = self.vision, self.text, self.region
        rules = (
            (vision.crop_size % vision.enc_patch_size == 0, "vision.crop_size must be a multiple of enc_patch_size"),
            (vision.window > 0, "vision.overlap_margin leaves no room inside the crop"),
            (vision.enc_dim % vision.enc_n_heads == 0, "vision.enc_dim must be a multiple of enc_n_heads"),
            (text.dim % (4 * text.n_heads) == 0, "text.dim must be a multiple of 4 x n_heads (RoPE turns half a head)"),
            (text.n_heads % text.kv_heads == 0, "text.n_heads must be a multiple of n_kv_heads"),
            (vision.proj_out_dim == text.dim, "vision.proj_out_dim must equal text.dim"),
            (region.dim == text.dim, "region.dim must equal text.dim"),
            (region.size_out_dim % 2 == 0, "region.size_out_dim must be even (widths, then heights)"),
            (
                text.prefix_attn in (None, self.prefix_len),
                f"text.prefix_attn is {text.prefix_attn}, but the vision grid makes prefixes of {self.prefix_len}",
            ),
        )
        for good, rule in rules:
            if not good:
                raise UsageError(f"{where}: {rule}")
        if self.tokens is not None and (highest := self.tokens.highest_id) >= text.vocab_size:
            raise UsageError(f"{where}: tokenizer names the id {highest}, but text.vocab_size is {text.vocab_size}")


def _section(kind: type[T], raw: dict[str, Any], name: str, where: str) -> T:
    values = raw.get(name) or {}
    if not isinstance(values, dict):
        raise UsageError(f"{where}: {name} must be a mapping, not {values!r}")
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ", and it may change what the model computes"
            raise UsageError(f"{where}: {name}.{key} is not a Moondream 2 setting{hint}")
        _check_value(kind, key, values[key], f"{where}: {name}.{key}")
    return kind(**values)


def _check_value(kind: type[Any], key: str, value: object, where: str) -> None:
    """Sizes are positive integers, ids and margins may be 0, templates are lists of ids by name and part."""
    if key == "templates":
        _check_templates(value, where)
    elif not (value is None and getattr(kind(), key) is None):
        least = 0 if key.endswith("_id") or key == "overlap_margin" else 1
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{where} must be an integer of at least {least}, not {value!r}")


def _check_templates(value: object, where: str) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must map skills to templates, not be {value!r}")
    for skill, template in value.items():
        if template is None:
            continue
        good = isinstance(template, dict) and all(
            isinstance(ids, list) and all(isinstance(i, int) and i >= 0 for i in ids) for ids in template.values()
        )
        if not good or (skill != "caption" and not {"prefix", "suffix"} <= template.keys()):
            raise UsageError(f"{where}.{skill} must hold lists of ids: by length for caption, else prefix and suffix")
