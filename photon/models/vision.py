"""The vision encoder: crops to patch features, features of all crops to one grid of image tokens.

Module and parameter names are the hub checkpoint's. Cutting the crops is ``tiling``'s work.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from photon.kernels.dense import attention
from photon.models.config import VisionConfig
from photon.models.layers import MLP, layer_norm, linear, parameter
from photon.models.tiling import crop_count


def normalise(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """uint8 [n, h, w, 3] to [n, 3, h, w] in about [-1, 1], rounded to bfloat16 after every step.

    The reference prepares pixels in bfloat16 whatever the model's precision; normalising in float32 moves the
    embeddings by about a percent of their scale.
    """
    x = pixels.permute(0, 3, 1, 2).to(torch.bfloat16, memory_format=torch.contiguous_format)
    return x.div_(255).sub_(0.5).div_(0.5).to(dtype)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = linear(dim, 3 * dim)
        self.proj = linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        n, patches, dim = x.shape
        q, k, v = self.qkv(x).view(n, patches, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        mixed = attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(n, patches, dim))  # type: ignore[no-any-return]


class Block(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.ln1 = layer_norm(config.enc_dim)
        self.attn = Attention(config.enc_dim, config.enc_n_heads)
        self.ln2 = layer_norm(config.enc_dim)
        self.mlp = MLP(config.enc_dim, config.enc_ff_dim, config.enc_dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))  # type: ignore[no-any-return]


class VisionModel(nn.Module):
    """SigLIP-style encoder, then stitching, pooling and projection into the text model's width."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_emb = linear(config.in_channels * config.enc_patch_size**2, config.enc_dim)
        self.pos_emb = parameter(1, config.grid**2, config.enc_dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.enc_n_layers))
        self.post_ln = layer_norm(config.enc_dim)
        self.proj_mlp = MLP(2 * config.enc_dim, config.proj_inner_dim, config.proj_out_dim)

    def patches(self, pixels: Tensor) -> Tensor:
        """[n, 3, crop, crop] to [n, grid x grid, 3 x patch x patch]: patches row by row, channel first within."""
        n, channels = pixels.shape[:2]
        grid, patch = self.config.grid, self.config.enc_patch_size
        tiles = pixels.view(n, channels, grid, patch, grid, patch).permute(0, 2, 4, 1, 3, 5)
        return tiles.reshape(n, grid * grid, channels * patch * patch)

    def encode(self, pixels: Tensor) -> Tensor:
        """Normalised pixels [n, 3, crop, crop] to features [n, grid x grid, enc_dim]; crops do not see each other."""
        x = self.patch_emb(self.patches(pixels)) + self.pos_emb
        for block in self.blocks:
            x = block(x)
        return self.post_ln(x)  # type: ignore[no-any-return]

    def pool(self, tiles: Tensor, tiling: tuple[int, int]) -> Tensor:
        """Features of the tiles [rows x cols, grid x grid, enc_dim], stitched and averaged to [grid x grid, enc_dim].

        A tile gives up its margin wherever it has a neighbour. Cell a of the grid averages the stitched rows
        floor(a H / grid) to ceil((a + 1) H / grid), and columns alike: adaptive average pooling.
        """
        (rows, cols), grid, margin = tiling, self.config.grid, self.config.overlap_margin
        if tiling == (1, 1):
            return tiles[0]
        dim = tiles.shape[-1]
        grids = tiles.view(rows, cols, grid, grid, dim)
        bands = []
        for i in range(rows):
            top, bottom = (0 if i == 0 else margin), (grid if i == rows - 1 else grid - margin)
            band = []
            for j in range(cols):
                left, right = (0 if j == 0 else margin), (grid if j == cols - 1 else grid - margin)
                band.append(grids[i, j, top:bottom, left:right])
            bands.append(torch.cat(band, dim=1))
        stitched = torch.cat(bands, dim=0).permute(2, 0, 1)
        pooled = F.adaptive_avg_pool2d(stitched, (grid, grid))
        return pooled.permute(1, 2, 0).reshape(grid * grid, dim)

    def project(self, features: Tensor, tilings: list[tuple[int, int]]) -> Tensor:
        """Features of several pictures' crops, one after the other, to image tokens [pictures, grid x grid, dim]."""
        joined, at = [], 0
        for tiling in tilings:
            n = crop_count(tiling)
            tiles = features[at : at + 1] if n == 1 else features[at + 1 : at + n]
            joined.append(torch.cat((features[at], self.pool(tiles, tiling)), dim=-1))
            at += n
        return self.proj_mlp(torch.stack(joined))  # type: ignore[no-any-return]

    def features(self, pixels: Tensor) -> Tensor:
        """uint8 crops [n, crop, crop, 3] to features [n, grid x grid, enc_dim], whosever crops they are."""
        return self.encode(normalise(pixels, self.pos_emb.dtype))

    def forward(self, pixels: Tensor, tilings: list[tuple[int, int]]) -> Tensor:
        """uint8 crops [n, crop, crop, 3] of several pictures to image tokens [pictures, grid x grid, dim]."""
        return self.project(self.features(pixels), tilings)
