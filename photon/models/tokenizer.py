"""The vocabulary: text to ids and back.

Loads through transformers, once; the hot path then calls the fast (Rust) tokenizer below it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from photon.errors import UsageError
from photon.models.config import TokenConfig

_FILES = ("tokenizer.json", "vocab.json")


class Tokenizer:
    def __init__(self, backend: Any) -> None:
        """``backend``: a ``tokenizers.Tokenizer``."""
        self._backend = backend

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """From a folder with ``tokenizer.json`` (or ``vocab.json`` and ``merges.txt``). Raises ``UsageError``."""
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        if not any((folder / name).exists() for name in _FILES):
            raise UsageError(
                f"{folder}: holds no tokenizer.json; name a folder or hub id that has one as model.tokenizer "
                "(Moondream 2 from June 2025 on uses the hub id moondream/starmie-v1)"
            )
        fast: Any
        try:
            if (folder / "tokenizer.json").exists():
                fast = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
            else:
                fast = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # the Rust side raises bare Exception
            raise UsageError(f"{folder}: the tokenizer cannot be read: {error}") from None
        return cls(fast.backend_tokenizer)

    @property
    def size(self) -> int:
        return int(self._backend.get_vocab_size())

    def id_of(self, token: str) -> int | None:
        found: int | None = self._backend.token_to_id(token)
        return found

    def encode(self, text: str) -> list[int]:
        """The text's own ids: nothing is added in front or behind."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Special tokens leave no trace; bytes that are no UTF-8 come out as U+FFFD."""
        text: str = self._backend.decode(list(ids))
        return text


def resolve_tokens(stated: TokenConfig | None, tokenizer: Tokenizer, where: str) -> TokenConfig:
    """The ids and templates that go with a vocabulary: those the config states, else those of its generation.

    The end-of-text token tells the generations apart. Raises ``UsageError`` where config and vocabulary disagree.
    """
    end = tokenizer.id_of("<|endoftext|>")
    tokens = stated or (TokenConfig.codegen() if end == TokenConfig.codegen().eos_id else TokenConfig())
    if end != tokens.eos_id:
        raise UsageError(
            f"{where}: the model ends a text with id {tokens.eos_id}, but in this tokenizer <|endoftext|> is {end}: "
            "they belong to different revisions; name the right one as model.tokenizer"
        )
    return tokens
