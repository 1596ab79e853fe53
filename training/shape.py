"""The size of the model in the box: the one place that says it.

In the config schema of the hub's checkpoints. The vocabulary adds its own part (``vocabulary.token_section``).
"""

from __future__ import annotations

from typing import Any

from photon.models.config import MoondreamConfig

VOCABULARY = 512
BINS = 256
"""Of a coordinate, and of each side of a size."""

SECTIONS: dict[str, dict[str, int]] = {
    "text": {"dim": 192, "ff_dim": 768, "n_layers": 6, "vocab_size": VOCABULARY, "max_context": 1024, "n_heads": 6},
    "vision": {
        "enc_dim": 192,
        "enc_patch_size": 14,
        "enc_n_layers": 6,
        "enc_ff_dim": 768,
        "enc_n_heads": 4,
        "proj_out_dim": 192,
        "crop_size": 112,
        "in_channels": 3,
        "max_crops": 6,
        "overlap_margin": 1,
        "proj_inner_dim": 768,
    },
    "region": {
        "dim": 192,
        "coord_feat_dim": 64,
        "coord_out_dim": BINS,
        "size_feat_dim": 64,
        "size_out_dim": 2 * BINS,
        "inner_dim": 384,
    },
}

SMOKE_SECTIONS: dict[str, dict[str, int]] = {
    "text": SECTIONS["text"] | {"dim": 48, "ff_dim": 96, "n_layers": 2, "n_heads": 2},
    "vision": SECTIONS["vision"]
    | {
        "enc_dim": 48,
        "enc_n_layers": 2,
        "enc_ff_dim": 96,
        "enc_n_heads": 2,
        "proj_out_dim": 48,
        "proj_inner_dim": 96,
    },
    "region": SECTIONS["region"] | {"dim": 48, "inner_dim": 96},
}
"""A smaller one of the same kind, for trying the machinery."""


def as_config(sections: dict[str, dict[str, int]], tokens: dict[str, Any]) -> MoondreamConfig:
    """``tokens``: the config's ``tokenizer`` section."""
    return MoondreamConfig.from_dict({**sections, "tokenizer": tokens}, "training/shape.py")
