"""Weights from safetensors files into a model, checked whole before any of them is used.

Reads hub naming, training naming and int4 (dequantised on load); one file or shards with an index. Tensors are mapped
from the file where precision and device allow, so that a bfloat16 model on a CPU is in memory once. No pickle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from photon.errors import UsageError
from photon.models.config import MoondreamConfig
from photon.models.moondream import Moondream
from photon.models.names import canonical, is_transposed

INT4_GROUP = 128
_INT4_PARTS = (".packed", ".scale", ".zero_point")
_SHOWN = 8


def load_weights(config: MoondreamConfig, folder: Path, *, device: torch.device, dtype: torch.dtype) -> Moondream:
    """Build the model and fill it from ``folder``.

    Raises ``UsageError``, once, with every tensor that is missing, surplus or of another shape than ``config`` says.
    """
    model = Moondream(config)
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    with ExitStack() as stack:
        stored = _open_all(folder, stack)
        _check(wanted, stored, folder)
        for name in wanted:
            tensor = stored.read(name).to(device=device, dtype=dtype)
            owner, _, leaf = name.rpartition(".")
            parameter = torch.nn.Parameter(tensor.contiguous(), requires_grad=False)
            setattr(model.get_submodule(owner), leaf, parameter)
    model.text.rope = model.text.rope.to(device)
    return model


class _Stored:
    """Every tensor of the checkpoint by our name, wherever it lies."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[str, safe_open]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, file: safe_open, path: Path) -> None:
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            ours = canonical(name)
            if ours in self.places:
                raise UsageError(
                    f"{path}: {name}: the checkpoint holds this tensor twice, as {self.places[ours][0]} too"
                )
            shape = tuple(file.get_slice(name).get_shape())
            self.places[ours] = (name, file)
            self.shapes[ours] = shape[::-1] if is_transposed(name) else shape

    def _raw(self, name: str) -> Tensor:
        stored_name, file = self.places[name]
        tensor: Tensor = file.get_tensor(stored_name)
        return tensor.T if is_transposed(stored_name) else tensor

    def read(self, name: str) -> Tensor:
        if name in self.places:
            return self._raw(name)
        packed, scale, zero = (self._raw(name + part) for part in _INT4_PARTS)
        return dequantise_int4(packed, scale, zero, columns=self.int4_columns[name])

    int4_columns: Mapping[str, int] = {}


def dequantise_int4(packed: Tensor, scale: Tensor, zero_point: Tensor, *, columns: int) -> Tensor:
    """Packed nibbles to a matrix [rows, columns].

    ``packed`` uint8 [groups / 2, 128] holds the first half of the groups in its high nibbles, the second half in its
    low ones; ``scale`` and ``zero_point`` [groups, 1]. A group is 128 consecutive values of the row-major matrix.
    """
    nibbles = torch.cat((packed >> 4, packed & 15)).float()
    return ((nibbles - zero_point.float()) * scale.float()).to(scale.dtype).reshape(-1, columns)


def _open_all(folder: Path, stack: ExitStack) -> _Stored:
    stored = _Stored()
    for path in _files(folder):
        try:
            file = stack.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise UsageError(f"{path}: not a readable safetensors file: {error}") from None
        stored.add(file, path)
    return stored


def _files(folder: Path) -> Iterator[Path]:
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if not index.exists():
        if not single.exists():
            raise UsageError(f"{folder}: holds neither model.safetensors nor model.safetensors.index.json")
        yield single
        return
    try:
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{index}: not a safetensors index: {error!r}") from None
    for shard in shards:
        path = folder / str(shard)
        if path.parent != folder or not path.exists():
            raise UsageError(f"{index}: names the shard {shard!r}, which is not in {folder}")
        yield path


def _check(wanted: Mapping[str, tuple[int, ...]], stored: _Stored, folder: Path) -> None:
    problems, used, columns = [], set(), {}
    for name, shape in wanted.items():
        parts = [name + part for part in _INT4_PARTS]
        if name in stored.shapes:
            used.add(name)
            if stored.shapes[name] != shape:
                problems.append(f"{name} is {list(stored.shapes[name])}, not {list(shape)}")
        elif any(part in stored.shapes for part in parts):
            used.update(parts)
            columns[name] = shape[-1]
            problems.extend(_int4_problems(name, shape, [stored.shapes.get(part) for part in parts]))
        else:
            problems.append(f"{name} {list(shape)} is missing")
    problems.extend(f"{name} is surplus" for name in stored.shapes if name not in used)
    stored.int4_columns = columns
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise UsageError(
            f"{folder}: weights and config.json do not agree: {'; '.join(problems[:_SHOWN])}{more}. "
            "Check that both come from the same revision"
        )


def _int4_problems(name: str, shape: tuple[int, ...], found: list[tuple[int, ...] | None]) -> Iterator[str]:
    groups = shape[0] * shape[-1] // INT4_GROUP
    wanted = ((groups // 2, INT4_GROUP), (groups, 1), (groups, 1))
    for part, want, have in zip(_INT4_PARTS, wanted, found, strict=True):
        if have != want:
            state = "missing" if have is None else f"{list(have)}, not {list(want)}"
            yield f"{name}{part} is {state}"
