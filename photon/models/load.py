"""From what the manifest calls a model to a model in memory: a folder, a hub id, or a model that ships with us.

The only module that may reach a model hub, and only for an id that was named.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from photon.errors import InputError, UsageError
from photon.models.config import MoondreamConfig, TokenConfig, VisionConfig
from photon.models.tokenizer import Tokenizer, resolve_tokens

if TYPE_CHECKING:
    import torch

    from photon.models.moondream import Moondream

SHIPPED = {"photon://shapes": "shapes", "photon://tiny": "tiny"}
"""Models in the package, by their folder in ``assets``: a trained one (docs/model-in-the-box.md), and one that is not
trained."""
_WEIGHTS = ["config.json", "*.safetensors", "*.safetensors.index.json"]
_VOCABULARY = ["tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "special_tokens_map.json"]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run. ``fingerprint`` changes when the weights, the config or the vocabulary do."""

    model: Moondream
    tokens: TokenConfig
    tokenizer: Tokenizer
    fingerprint: str
    meaningless: bool = False  # random weights: its answers show the machinery, not the pictures


def load_model(
    path: str,
    *,
    revision: str | None = None,
    tokenizer: str | None = None,
    tokenizer_revision: str | None = None,
    device: torch.device,
    dtype: torch.dtype,
) -> LoadedModel:
    """Load ``path``: a folder, a hub id (with ``revision``), or one of SHIPPED.

    ``tokenizer`` names another folder or hub id for checkpoints that come without a vocabulary. Raises ``UsageError``
    for anything wrong with the files and ``InputError`` when the hub cannot be reached.
    """
    from photon.models.weights import load_weights

    folder = _folder(path, revision, "model.path", "model.revision", _WEIGHTS + _VOCABULARY)
    vocabulary = folder
    if tokenizer is not None:
        vocabulary = _folder(tokenizer, tokenizer_revision, "model.tokenizer", "model.tokenizer_revision", _VOCABULARY)
    config = MoondreamConfig.read(folder / "config.json")
    words = Tokenizer.load(vocabulary)
    tokens = resolve_tokens(config.tokens, words, str(vocabulary))
    if words.size > config.text.vocab_size:
        raise UsageError(
            f"{vocabulary}: the tokenizer has {words.size} tokens, but {folder} only {config.text.vocab_size}"
        )
    model = load_weights(config, folder, device=device, dtype=dtype)
    fingerprint = _fingerprint([*sorted(folder.glob("*.safetensors")), folder / "config.json", *_existing(vocabulary)])
    return LoadedModel(model, tokens, words, fingerprint, meaningless=path == "photon://tiny")


def vision_of(path: str) -> VisionConfig | None:
    """How a model cuts pictures, by its config alone; None for one that would have to be fetched for that. Raises
    ``UsageError`` for a config that is none."""
    folder = Path(__file__).parent.parent / "assets" / SHIPPED[path] if path in SHIPPED else Path(path)
    return MoondreamConfig.read(folder / "config.json").vision if folder.is_dir() else None


def _folder(name: str, revision: str | None, key: str, revision_key: str, patterns: list[str]) -> Path:
    if name in SHIPPED:
        return Path(__file__).parent.parent / "assets" / SHIPPED[name]
    if name.startswith("photon://"):
        raise UsageError(
            f"{key}: {name} does not ship with photon-batch; what ships is {', '.join(SHIPPED)}, photon://null"
        )
    path = Path(name)
    if path.is_dir():
        return path
    if path.is_file() and path.name == "tokenizer.json" and key == "model.tokenizer":
        return path.parent
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise UsageError(f"{key}: there is no folder {name}")
    if revision is None:
        raise UsageError(
            f"{key}: there is no folder {name}. If it is a hub id, pin it: {revision_key} takes a commit or tag of it"
        )
    return _download(name, revision, key, patterns)


def _download(name: str, revision: str, key: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(f"{key}: {name} at {revision} cannot be had from the hub: {error}") from error


def _existing(folder: Path) -> list[Path]:
    return [folder / name for name in _VOCABULARY if (folder / name).exists()]


def _fingerprint(files: list[Path]) -> str:
    """SHA-256 over the files' own digests, first 16 hex digits. Reads the weights once more."""
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:16]
