"""The places on disk that a manifest names: do they exist? Addresses with a scheme are the readers' to try.

Like ``rules`` it looks at plain values, half-wrong ones too.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from photon.manifest.problems import KeyPath, nearest

BUILT_IN = ("photon://shapes", "photon://tiny", "photon://null")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def missing_paths(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, what is wrong and what to do) of each path in ``data``, a manifest's values, that leads nowhere."""
    source, model = data.get("input"), data.get("model")
    if isinstance(source, Mapping):
        for name in ("parquet", "arrow", "folder", "webdataset"):
            yield from _missing_files(name, source.get(name))
    if isinstance(model, Mapping):
        yield from _missing_model(model)
        yield from _missing_adapters(model.get("adapters"))


def _missing_files(name: str, value: Any) -> Iterator[tuple[KeyPath, str]]:
    for i, pattern in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(pattern, str) or not pattern or "://" in pattern:
            continue
        place = os.path.expanduser(pattern)
        if not os.path.exists(place) and next(glob.iglob(place, recursive=True), None) is None:
            what = "no file matches" if glob.has_magic(pattern) else "there is no"
            yield ("input", name, i), f"{what} {pattern}; {_start()}"


def _missing_model(model: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key, pin in (("path", "revision"), ("tokenizer", "tokenizer_revision")):
        name = model.get(key)
        if not isinstance(name, str) or not name or name in BUILT_IN or os.path.exists(os.path.expanduser(name)):
            continue
        if name.startswith("photon://"):
            yield ("model", key), f"there is no {name}; {nearest(name, BUILT_IN)}"
        elif not _HUB_ID.fullmatch(name) or name.startswith("."):
            yield ("model", key), f"there is no {name}; {_start()}, a hub id reads owner/name"
        elif model.get(pin) is None:
            why = f"as a hub id it needs a {pin} (a tag or commit) beside it"
            yield ("model", key), f"there is no folder {name}; {why}"


def _missing_adapters(adapters: Any) -> Iterator[tuple[KeyPath, str]]:
    for name, file in adapters.items() if isinstance(adapters, Mapping) else ():
        if not isinstance(file, str) or not file or not isinstance(name, str):
            continue
        path = ("model", "adapters", name)
        if os.path.isdir(os.path.expanduser(file)):
            yield path, f"{file} is a folder; name the file in it, .safetensors or .pt"
        elif not os.path.exists(os.path.expanduser(file)):
            yield path, f"there is no {file}; {_start()}"


def _start() -> str:
    return f"relative paths start from {os.getcwd()}"
