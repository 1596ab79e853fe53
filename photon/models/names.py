"""Tensor names: from what files call them to what our modules call them.

Files come in hub naming (``model.text.blocks.0...``), in training naming (``text_model.transformer.h.0...``), and
either may carry int4 triples (``X.weight.packed`` and so on), whose suffix is left alone here.
"""

from __future__ import annotations

import re

_VISUAL = r"vision_encoder\.encoder\.model\.visual"
_TRAINING = [
    (rf"{_VISUAL}\.patch_embed\.linear\.", "vision.patch_emb."),
    (rf"{_VISUAL}\.pos_embed$", "vision.pos_emb"),
    (rf"{_VISUAL}\.norm\.", "vision.post_ln."),
    (rf"{_VISUAL}\.blocks\.(\d+)\.norm([12])\.", r"vision.blocks.\1.ln\2."),
    (rf"{_VISUAL}\.blocks\.(\d+)\.(attn|mlp)\.", r"vision.blocks.\1.\2."),
    (r"vision_encoder\.projection\.mlp\.", "vision.proj_mlp."),
    (r"text_model\.transformer\.embd\.wte\.weight$", "text.wte"),
    (r"text_model\.transformer\.h\.(\d+)\.ln\.", r"text.blocks.\1.ln."),
    (r"text_model\.transformer\.h\.(\d+)\.mixer\.Wqkv\.", r"text.blocks.\1.attn.qkv."),
    (r"text_model\.transformer\.h\.(\d+)\.mixer\.out_proj\.", r"text.blocks.\1.attn.proj."),
    (r"text_model\.transformer\.h\.(\d+)\.mlp\.", r"text.blocks.\1.mlp."),
    (r"text_model\.lm_head\.ln\.", "text.post_ln."),
    (r"text_model\.lm_head\.linear\.", "text.lm_head."),
    (r"region_model\.coordinate_(encoder|decoder)\.", r"region.coord_\1."),
    (r"region_model\.size_(encoder|decoder)\.", r"region.size_\1."),
    (r"region_model\.coordinate_features\.weight$", "region.coord_features"),
    (r"region_model\.size_features\.weight$", "region.size_features"),
]
_RULES = [(re.compile("^" + pattern), new) for pattern, new in _TRAINING]
_TRANSPOSED = re.compile(r"^region_model\.(coordinate|size)_features\.weight$")


def canonical(name: str) -> str:
    """Our name of a file's tensor; a name that no rule knows comes back as it is, less a ``model.`` in front."""
    name = name.replace("._orig_mod", "")
    for pattern, new in _RULES:
        name, hits = pattern.subn(new, name)
        if hits:
            return name
    return name.removeprefix("model.")


def is_transposed(name: str) -> bool:
    """Whether training naming stores this tensor the other way round."""
    return _TRANSPOSED.match(name.replace("._orig_mod", "")) is not None
