"""LoRA adapters for the text model: their files, and what they add while a step's tokens go through a block.

An adapter holds, for four matrices of every layer, A [rank, in] and B [out, rank]; the matrix's output grows by B A x,
with no other scale. Moondream 2's "variants" are such files. Who uses which adapter when is the engine's affair.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from photon.errors import UsageError
from photon.kernels.dense import product
from photon.models.config import TextConfig

MATRICES = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
SUFFIXES = (".safetensors", ".pt")
_RENAMED = (
    ("._orig_mod", ""),
    ("text_model.transformer.h", "text.blocks"),
    (".mixer", ".attn"),
    (".out_proj", ".proj"),
    (".Wqkv", ".qkv"),
    (".parametrizations.weight.0", ""),
)
_NAME = re.compile(rf"text\.blocks\.(\d+)\.({'|'.join(map(re.escape, MATRICES))})\.([AB])")
_SHOWN = 8


def shapes(config: TextConfig) -> dict[str, tuple[int, int]]:
    """(in, out) of each matrix that adapters touch."""
    heads = (config.n_heads + 2 * config.kv_heads) * config.head_dim
    sizes = (config.dim, heads), (config.dim, config.dim), (config.dim, config.ff_dim), (config.ff_dim, config.dim)
    return dict(zip(MATRICES, sizes, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """One file's content. By matrix: ``down`` [layers, rank, in], which is A, and ``up`` [layers, rank, out], B turned
    round. Smaller ranks are padded with zeros to ``rank``. ``digest`` changes when the file does."""

    down: Mapping[str, Tensor]
    up: Mapping[str, Tensor]
    rank: int
    digest: str


def read_adapter(path: Path, config: TextConfig) -> Adapter:
    """Read a ``.safetensors`` file, or a ``.pt`` file that holds tensors and nothing else: no other pickle is opened.

    Raises ``UsageError`` naming the file and every tensor that is missing, surplus or of a shape that does not fit.
    """
    tensors: dict[str, Tensor] = {}
    for stored, tensor in _stored(path).items():
        name = _canonical(stored)
        if name in tensors:
            raise UsageError(f"{path}: {stored}: the adapter holds this tensor twice under different names")
        tensors[name] = tensor
    ranks = _ranks(tensors, config, path)
    rank = max(ranks.values())
    down, up = {}, {}
    for matrix, (inputs, outputs) in shapes(config).items():
        down[matrix] = torch.zeros(config.n_layers, rank, inputs)
        up[matrix] = torch.zeros(config.n_layers, rank, outputs)
        for layer in range(config.n_layers):
            name = f"text.blocks.{layer}.{matrix}"
            down[matrix][layer, : ranks[name]] = tensors[f"{name}.A"]
            up[matrix][layer, : ranks[name]] = tensors[f"{name}.B"].T
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return Adapter(down, up, rank, digest)


def _stored(path: Path) -> dict[str, Tensor]:
    """The file's tensors by the file's names."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; an adapter is one file, {' or '.join(SUFFIXES)}")
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: an adapter is a file whose name ends in {' or '.join(SUFFIXES)}")
    try:
        held = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UsageError(
            f"{path}: holds more than tensors, or is no .pt file; it is not opened, since a pickle can run any code. "
            "Save the tensors alone, best as .safetensors"
        ) from None
    except Exception as error:  # a damaged file leads torch's reader to errors of many kinds
        raise UsageError(f"{path}: not readable as {path.suffix}: {type(error).__name__}: {error}") from error
    if not isinstance(held, Mapping) or not held:
        raise UsageError(f"{path}: holds no tensors by name")
    strange = next((name for name, value in held.items() if not isinstance(value, Tensor)), None)
    if strange is not None:
        raise UsageError(f"{path}: {strange} is no tensor; an adapter holds tensors by name, all on one level")
    return {str(name): value for name, value in held.items()}


def _canonical(name: str) -> str:
    """Our name of a file's tensor: the training code's names, step by step as the reference renames them."""
    name = name.removeprefix("model.")
    for old, new in _RENAMED:
        name = name.replace(old, new)
    return name


def _ranks(tensors: Mapping[str, Tensor], config: TextConfig, path: Path) -> dict[str, int]:
    """The rank of every layer's matrices, once all tensors are there and fit each other and the model."""
    problems, ranks = [], {}
    for layer in range(config.n_layers):
        for matrix, (inputs, outputs) in shapes(config).items():
            name = f"text.blocks.{layer}.{matrix}"
            a, b = tensors.get(f"{name}.A"), tensors.get(f"{name}.B")
            for leaf, tensor, shape in (("A", a, f"[rank, {inputs}]"), ("B", b, f"[{outputs}, rank]")):
                if tensor is None:
                    problems.append(f"{name}.{leaf} {shape} is missing")
                elif tensor.ndim != 2 or tensor.shape[1 if leaf == "A" else 0] != (inputs if leaf == "A" else outputs):
                    problems.append(f"{name}.{leaf} is {list(tensor.shape)}, not {shape}")
                elif not tensor.is_floating_point() or not tensor.isfinite().all():
                    problems.append(f"{name}.{leaf} holds values that are no finite numbers of floating point")
            if a is not None and b is not None and a.ndim == b.ndim == 2:
                ranks[name] = a.shape[0]
                if a.shape[0] != b.shape[1] or not a.shape[0]:
                    problems.append(f"{name} has A of rank {a.shape[0]} and B of rank {b.shape[1]}")
    for name in tensors:
        known = _NAME.fullmatch(name)
        if known is None or int(known[1]) >= config.n_layers:
            problems.append(f"{name} is surplus")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise UsageError(f"{path}: this adapter does not fit the model: {'; '.join(problems[:_SHOWN])}{more}")
    return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Deltas:
    """What a step's tokens add to the outputs of a matrix, whichever adapter each of them has.

    The adapters of a bank lie side by side: ``down`` [layers, columns, in] and ``up`` [layers, columns, out] by
    matrix. ``mine`` [tokens, columns] is 1 where a column belongs to the token's adapter, 0 elsewhere: all of them are
    multiplied, and what is not the token's own comes to nothing. ``merged``: see ``LayerDeltas.proj``.
    """

    down: Mapping[str, Tensor]
    up: Mapping[str, Tensor]
    mine: Tensor
    merged: bool

    def layer(self, number: int) -> LayerDeltas:
        return LayerDeltas(self, number)


@dataclass(frozen=True, slots=True, eq=False)
class LayerDeltas:
    """Of one layer."""

    deltas: Deltas
    number: int

    def __call__(self, matrix: str, x: Tensor) -> Tensor:
        """For inputs [tokens, in] of a matrix: [tokens, out]."""
        of, n = self.deltas, self.number
        inner = product(x, of.down[matrix][n]) * of.mine
        return product(inner, of.up[matrix][n].T)

    def proj(self, normed: Tensor, mixed: Tensor) -> Tensor:
        """Of the attention's projection. ``mixed`` is what the projection reads: with ``merged``, the adapter reads it
        too, which is W + B A; otherwise it reads the block's ``normed`` input, as the reference does."""
        return self("attn.proj", mixed if self.deltas.merged else normed)
