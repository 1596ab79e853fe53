"""Values from outside the file: ``--set KEY=VALUE`` and environment variables named PHOTON_BATCH__KEY.

They are put into a document before it is checked, so they are held to the same rules as what stands in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from photon.errors import UsageError
from photon.manifest.document import Document, plain_scalar
from photon.manifest.problems import KeyPath, ManifestError, Problem

PREFIX = "PHOTON_BATCH__"
_EXAMPLE = "for example --set engine.depth=1"


@dataclass(frozen=True, slots=True)
class Override:
    """``parts`` lead to the key, numbers of lists among them; ``text`` is the value as written."""

    parts: tuple[str, ...]
    text: str
    origin: str


def override_of(argument: str) -> Override:
    """``KEY=VALUE`` as given to --set. Raises ``UsageError`` where that is not what it is."""
    key, equals, text = argument.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(f"--set {argument}: is not KEY=VALUE; write both, {_EXAMPLE}")
    return Override(tuple(key.split(".")), text, f"--set {key}")


def overrides_in(environment: Mapping[str, str]) -> list[Override]:
    """One for each variable with our prefix: PHOTON_BATCH__ENGINE__DEPTH is ``engine.depth``. Outer keys come first."""
    named = sorted(name for name in environment if name.startswith(PREFIX))
    found = [Override(tuple(name[len(PREFIX) :].lower().split("__")), environment[name], name) for name in named]
    return sorted(found, key=lambda override: len(override.parts))


def apply_overrides(document: Document, overrides: Iterable[Override]) -> None:
    """Puts each value in the place of the file's, later ones in the place of earlier ones; one that has no place
    becomes a problem of the document's."""
    for override in overrides if isinstance(document.data, dict) else ():
        try:
            _apply(document, override)
        except ValueError as error:
            document.problems.append(Problem(override.parts, str(error), None, override.origin))


def _apply(document: Document, override: Override) -> None:
    holder = document.data
    path: KeyPath = ()
    for part in override.parts[:-1]:
        step = _step(holder, part, path)
        path = (*path, step)
        if isinstance(holder, dict) and holder.get(part) is None:
            holder[part] = {}
            _forget(document, path)
            document.origins[path] = override.origin
        holder = holder[step]
    step = _step(holder, override.parts[-1], path)
    path = (*path, step)
    value = _read(override.text)
    holder[step] = value.data
    _forget(document, path)
    document.origins |= {(*path, *inner): override.origin for inner in ((), *value.lines)}
    document.written |= {(*path, *inner): text for inner, text in value.written.items()}
    document.problems += [Problem((*path, *p.path), p.message, None, override.origin) for p in value.problems]


def _step(holder: Any, part: str, path: KeyPath) -> str | int:
    """The key or number that ``part`` is in ``holder``. Raises ``ValueError`` where it is none."""
    where = ".".join(map(str, path))
    if isinstance(holder, dict):
        return part
    if not isinstance(holder, list):
        raise ValueError(f"{where} is neither a mapping nor a list; set {where} as a whole")
    if not part.isdecimal() or int(part) >= len(holder):
        raise ValueError(f"{where} has no {part!r}; it is a list of {len(holder)}, numbered from 0")
    return int(part)


def _read(text: str) -> Document:
    """Text that begins with a bracket or a quote is YAML; any other is one scalar, colons and hashes included."""
    text = text.strip()
    if text[:1] not in {"[", "{", '"', "'"}:
        return Document("", plain_scalar(text), written={(): text})
    try:
        return Document.parse(text, "")
    except ManifestError as error:
        raise ValueError(error.problems[0].message) from None


def _forget(document: Document, path: KeyPath) -> None:
    """What the file said at ``path`` and inside of it is no longer so."""
    known: dict[KeyPath, Any]
    for known in (document.lines, document.written, document.origins, document.variables):
        for inner in [key for key in known if key[: len(path)] == path]:
            del known[inner]
