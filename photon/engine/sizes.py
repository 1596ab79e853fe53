"""How large an engine is: batch, rows, pages and what one step may hold.

Worst cases are reserved at admission, so nothing is evicted in mid-flight; the pool only decides how many requests
run at a time, never whether one can run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from photon.errors import UsageError
from photon.models.config import MoondreamConfig

PAGE_SIZE = 16
_TYPICAL_SUFFIX = 256  # tokens; the pool is sized for a full batch of these, less where memory is short
_AUTO_BATCH = {"cpu": 16, "cuda": 64}
_CACHED_BYTES = 8 << 20
"""A CPU packs pictures into a step up to about so much in the widest layer: small ones share the cost of starting an
operator; large ones share nothing, and fall out of the caches together (docs/lab-log.md)."""
_MOST_PACKED = 16


@dataclass(frozen=True, slots=True)
class Sizes:
    """``rows`` and ``prefixes`` have slack over ``max_batch``: a zombie holds its row for a step longer.

    ``picture_crops`` is the most that one picture has; a vision step takes one picture, or several with at most
    ``vision_crops`` together. ``prefill_tokens`` bounds a prefill likewise.
    """

    max_batch: int
    rows: int
    prefixes: int
    page_size: int
    pages: int
    prefix_pages: int
    suffix_pages: int
    embeddings: int
    ring: int
    picture_crops: int
    vision_crops: int
    prefill_tokens: int

    @property
    def slot_crops(self) -> int:
        """What a slot has to hold."""
        return max(self.picture_crops, self.vision_crops)

    @property
    def staged(self) -> int:
        """Numbers that a step's inputs take at most: six for each token, and the tables of pages."""
        tables = self.rows * (self.suffix_pages + 8) + self.prefixes * (self.prefix_pages + self.rows)
        return 6 * (self.prefill_tokens + self.suffix_pages * self.page_size) + tables


def choose_sizes(
    config: MoondreamConfig,
    *,
    max_batch: int | Literal["auto"],
    device_type: str,
    free_bytes: int,
    itemsize: int,
    memory_fraction: float,
    adapters: bool = False,
) -> Sizes:
    """Sizes for a model on a device with ``free_bytes`` left and ``itemsize`` bytes a number.

    With ``adapters``, a picture's image tokens stay as long as it does, since another adapter may ask for them: there
    is room for those of every prefix.

    Raises ``UsageError`` when not even one request of full length fits.
    """
    text = config.text
    batch = _AUTO_BATCH.get(device_type, 16) if max_batch == "auto" else max_batch
    prefix_pages = -(-config.prefix_len // PAGE_SIZE)
    suffix_pages = -(-text.max_context // PAGE_SIZE)
    least = prefix_pages + suffix_pages
    wanted = least + batch * (prefix_pages + -(-_TYPICAL_SUFFIX // PAGE_SIZE))
    page_bytes = 2 * text.n_layers * PAGE_SIZE * text.kv_heads * text.head_dim * itemsize
    embeddings = 2 * batch if adapters else max(4, min(batch, 16))
    kept_bytes = embeddings * (config.prefix_len - 1) * text.dim * itemsize if adapters else 0
    affordable = (int(free_bytes * memory_fraction) - kept_bytes) // page_bytes
    if affordable < least:
        raise UsageError(
            f"one request needs {least * page_bytes / 1e9:.2f} GB of key/value memory, but only "
            f"{free_bytes * memory_fraction / 1e9:.2f} GB are free for it: use a smaller model or a larger machine, "
            "or raise engine.memory_fraction"
        )
    crops, prefixes = _packed(config, device_type)
    return Sizes(
        max_batch=batch,
        rows=2 * batch,
        prefixes=2 * batch,
        page_size=PAGE_SIZE,
        pages=min(wanted, affordable),
        prefix_pages=prefix_pages,
        suffix_pages=suffix_pages,
        embeddings=embeddings,
        ring=max(4, min(batch, 16)),
        picture_crops=config.vision.max_crops + 1,
        vision_crops=crops,
        prefill_tokens=prefixes * config.prefix_len + 512,
    )


def _packed(config: MoondreamConfig, device_type: str) -> tuple[int, int]:
    """Crops to a vision step and prefixes to a prefill."""
    if device_type != "cpu":
        return config.vision.max_crops + 1, 4
    crop_bytes = config.vision.grid**2 * config.vision.enc_ff_dim * 4
    prefix_bytes = config.prefix_len * config.text.ff_dim * 4
    crops, prefixes = (max(1, min(_MOST_PACKED, _CACHED_BYTES // size)) for size in (crop_bytes, prefix_bytes))
    return crops, prefixes
