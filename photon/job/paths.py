"""The places on disk that a manifest names: do they exist? Addresses with a scheme are the readers' to try.

Like ``rules`` it looks at plain values, half-wrong ones too.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from photon.job.problems import KeyPath, nearest

BUILT_IN = ("photon://tiny", "photon://null")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def missing_paths(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, what is wrong and what to do) of each path in ``data``, a manifest's values, that leads nowhere."""
    source, model = data.get("input"), data.get("model")
    if isinstance(source, Mapping):
        for name in ("parquet", "arrow"):
            yield from _missing_files(name, source.get(name))
    if isinstance(model, Mapping):
        yield from _missing_model(model)


def _missing_files(name: str, value: Any) -> Iterator[tuple[KeyPath, str]]:
    for i, pattern in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(pattern, str) or not pattern or "://" in pattern:
            continue
        if not os.path.exists(pattern) and next(glob.iglob(pattern, recursive=True), None) is None:
            what = "no file matches" if glob.has_magic(pattern) else "there is no"
            yield ("input", name, i), f"{what} {pattern}; {_start()}"


def _missing_model(model: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    path, tokenizer = model.get("path"), model.get("tokenizer")
    if isinstance(path, str) and path.startswith("photon://"):
        if path not in BUILT_IN:
            yield ("model", "path"), f"there is no {path}; {nearest(path, BUILT_IN)}"
    elif isinstance(path, str) and path and not os.path.exists(path):
        if not _HUB_ID.fullmatch(path) or path.startswith("."):
            yield ("model", "path"), f"there is no {path}; {_start()}, a hub id reads owner/name"
        elif model.get("revision") is None:
            yield (
                ("model", "path"),
                f"there is no folder {path}; as a hub id it needs a revision (a tag or commit) beside it",
            )
    if isinstance(tokenizer, str) and tokenizer.startswith((".", "/")) and not os.path.exists(tokenizer):
        yield ("model", "tokenizer"), f"there is no {tokenizer}; {_start()}"


def _start() -> str:
    return f"relative paths start from {os.getcwd()}"
