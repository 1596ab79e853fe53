"""Compares a manifest with the columns of its input: the second pass, once the input could be opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from photon.manifest.manifest import Manifest
from photon.manifest.problems import KeyPath, nearest

if TYPE_CHECKING:
    import pyarrow as pa


def check_columns(manifest: Manifest, schema: pa.Schema) -> None:
    """Raises ``ManifestError`` that lists every column which the manifest names and the input lacks."""
    found = [*_named_columns(manifest, schema), *_prompt_columns(manifest, schema)]
    if found:
        raise manifest.wrong(found)


def _named_columns(manifest: Manifest, schema: pa.Schema) -> Iterator[tuple[KeyPath, str]]:
    source = manifest.input
    named: list[tuple[KeyPath, str]] = [(("input", "image"), source.image)]
    if source.id is not None:
        named.append((("input", "id"), source.id))
    named += [(("input", "keep", i), name) for i, name in enumerate(source.keep)]
    for path, name in named:
        if name not in schema.names:
            yield path, f"the input has no column {name}; {nearest(name, schema.names)}"


def _prompt_columns(manifest: Manifest, schema: pa.Schema) -> Iterator[tuple[KeyPath, str]]:
    for number, task in enumerate(manifest.tasks):
        for i, template in enumerate(task.templates):
            key = ("question",) if task.type == "query" else ("objects", i)
            for column in template.columns if template else ():
                if column not in schema.names:
                    remedy = f"{nearest(column, schema.names)} (write {{{{ for a brace itself)"
                    yield ("tasks", number, *key), f"{{{column}}} names no column of the input; {remedy}"
                elif not _readable(schema, column):
                    kind = schema.field(column).type
                    yield ("tasks", number, *key), f"column {column} holds {kind}; fill prompts from text or numbers"


def _readable(schema: pa.Schema, column: str) -> bool:
    import pyarrow.types as kinds

    kind = schema.field(column).type
    return not (kinds.is_nested(kind) or "binary" in str(kind))
