"""What a card cannot beat: floors of vision, prefill and decode from its measured ceilings and the model's shapes.

Counted, not measured: two operations for each weight and token, four times positions x width a layer for attention,
every weight and every key and value read once in a decode step.
"""

from __future__ import annotations

from dataclasses import dataclass

from photon.models.config import MoondreamConfig

PROMPT = 10
"""Tokens of a question, its template included."""
POSITIONS = 745
"""Of a row in mid-answer, at the published shape: an image prefix of 730 and a short suffix."""
FORMULAS = (
    "crop = 2 x patches x (weights of the vision blocks + patch embedding) + 4 x patches^2 x width x layers",
    "image = 2 x patches x weights of the projection",
    "prefill(n) = 2 x n x weights of the text blocks + 4 x n x positions x width x layers",
    "decode bytes(rows) = weights read in a step + rows x positions x 2 x layers x kv width x bytes a number",
    "vision, prefill [s] = operations / measured matmul rate; decode [s] = bytes / measured copy bandwidth",
    "detect with n objects = (vision + prefill(prefix)) / questions + prefill(10) + 3n x decode(rows) / rows",
    "source: counted from the model's configuration; every row of a decode step reads its own prefix",
)


@dataclass(frozen=True, slots=True)
class Floors:
    """``bandwidth`` in bytes read and written per second, ``rate`` in operations per second. Results in seconds."""

    config: MoondreamConfig
    bandwidth: float
    rate: float
    itemsize: int = 2

    @property
    def crop_flop(self) -> float:
        v = self.config.vision
        patches = v.grid**2
        block = 4 * v.enc_dim**2 + 2 * v.enc_dim * v.enc_ff_dim
        embedding = v.in_channels * v.enc_patch_size**2 * v.enc_dim
        attention = 4 * patches**2 * v.enc_dim * v.enc_n_layers
        return 2 * patches * (block * v.enc_n_layers + embedding) + attention

    @property
    def image_flop(self) -> float:
        v = self.config.vision
        return 2 * v.grid**2 * (2 * v.enc_dim * v.proj_inner_dim + v.proj_inner_dim * v.proj_out_dim)

    @property
    def block_weights(self) -> int:
        t = self.config.text
        attention = 2 * t.dim**2 + 2 * t.dim * t.kv_heads * t.head_dim
        return t.n_layers * (attention + 2 * t.dim * t.ff_dim)

    @property
    def step_bytes(self) -> float:
        """Weights that a decode step reads: the text blocks, the output layer, and the region's small networks."""
        t, r = self.config.text, self.config.region
        region = r.dim * (r.coord_feat_dim + r.size_feat_dim) + 2 * r.dim * r.inner_dim
        region += r.inner_dim * (r.coord_out_dim + r.size_out_dim)
        return self.itemsize * (self.block_weights + t.dim * t.vocab_size + region)

    @property
    def position_bytes(self) -> float:
        """Keys and values of one position."""
        t = self.config.text
        return 2 * t.n_layers * t.kv_heads * t.head_dim * self.itemsize

    def vision(self, crops: int) -> float:
        return (crops * self.crop_flop + self.image_flop) / self.rate

    def prefill(self, tokens: int, positions: int | None = None) -> float:
        """``positions``: that each token attends to; all of its own forward where it is not said."""
        t = self.config.text
        attention = 4 * tokens * (positions or tokens) * t.dim * t.n_layers
        return (2 * tokens * self.block_weights + attention) / self.rate

    def decode(self, rows: int, positions: int = POSITIONS) -> float:
        return (self.step_bytes + rows * positions * self.position_bytes) / self.bandwidth

    def detect(self, *, crops: int, rows: int, questions: int = 1, objects: int = 3) -> float:
        """One request's share of the card's time."""
        prefix = self.config.prefix_len
        shared = (self.vision(crops) + self.prefill(prefix)) / questions
        return shared + self.prefill(PROMPT, prefix + PROMPT) + 3 * objects * self.decode(rows) / rows
