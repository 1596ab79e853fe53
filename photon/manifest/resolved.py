"""Every value that a manifest comes to, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from photon.manifest.document import Document
from photon.manifest.manifest import Manifest
from photon.manifest.overrides import PREFIX
from photon.manifest.problems import KeyPath
from photon.manifest.spelling import spelt

#: Values longer than this push their origin to the right, rather than every other one.
_WIDEST = 40
#: Mappings whose keys are the user's.
_FREE = (("input", "options"), ("model", "adapters"))


@dataclass(frozen=True, slots=True)
class Resolved:
    """``origin``: default, file:line, environment NAME, or --set KEY; several where the parts of a list differ."""

    key: str
    value: Any
    origin: str

    @property
    def shown(self) -> str:
        """The value as a manifest or --set would have it."""
        return spelt(self.value)


def resolve(manifest: Manifest) -> list[Resolved]:
    """In the order of the reference, sections and tasks key by key; lists and free mappings whole."""
    document = manifest.document or Document("manifest")
    plain = manifest.model_dump(mode="json")
    return [Resolved(".".join(map(str, path)), value, _origin(document, path)) for path, value in _leaves(plain, ())]


def resolved_table(values: Sequence[Resolved]) -> str:
    """One line each: key, value, origin."""
    keys = max(len(value.key) for value in values)
    widest = max((len(value.shown) for value in values if len(value.shown) <= _WIDEST), default=0)
    return "\n".join(f"{value.key:<{keys}}  {value.shown:<{widest}}  {value.origin}" for value in values)


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict) and path not in _FREE:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif path == ("tasks",):
        for number, task in enumerate(value):
            yield from _leaves(task, (*path, number))
    else:
        yield path, value


def _origin(document: Document, path: KeyPath) -> str:
    """Of the value as a whole, then of the overrides of its parts."""
    inner = [origin for place, origin in document.origins.items() if place[: len(path)] == path]
    return ", ".join(dict.fromkeys([_place(document, path), *map(_told, inner)]))


def _place(document: Document, path: KeyPath) -> str:
    if path in document.origins:
        return _told(document.origins[path])
    if path not in document.lines:
        return "default"
    filled = [name for place, names in document.variables.items() if place[: len(path)] == path for name in names]
    return " ".join([f"{document.file}:{document.lines[path]}", *(f"${{{name}}}" for name in dict.fromkeys(filled))])


def _told(origin: str) -> str:
    return f"environment {origin}" if origin.startswith(PREFIX) else origin
