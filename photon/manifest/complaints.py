"""Turns pydantic's errors into our problems: the key as the file has it, what was written there, and what to write.

Pydantic's own locations name the branch of a union that it tried; ours name keys and list positions alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from photon.manifest.document import Document
from photon.manifest.manifest import Manifest
from photon.manifest.overrides import PREFIX
from photon.manifest.problems import KeyPath, Problem, nearest
from photon.manifest.section import Section
from photon.manifest.tasks import TASK_TYPES


@dataclass(frozen=True)
class _Place:
    """Where an error sits: the key path, the section around it, and what its field wants to hold."""

    path: KeyPath
    section: type[Section]
    want: str = ""


def problems_of(error: ValidationError, document: Document) -> list[Problem]:
    """One problem for each wrong key. Broken rules between keys are left out: ``rules`` tells them better."""
    problems: dict[KeyPath, Problem] = {}
    for found in error.errors(include_url=False):
        if found["type"] == "value_error" and not found["loc"]:
            continue
        if found["type"] == "too_short" and found["input"]:  # follows from wrong items, which have errors of their own
            continue
        place = _place(found["loc"])
        path, message = _told(found, place, document)
        problems.setdefault(path, document.problem(path, message))
    return list(problems.values())


def _place(loc: tuple[str | int, ...]) -> _Place:
    place, rest = _Place((), Manifest), list(loc)
    while rest:
        part = rest.pop(0)
        path = (*place.path, part)
        field = place.section.model_fields.get(str(part))
        if field is None:
            return _Place(path, place.section)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            place = _Place(path, field.annotation, field.description or "")
        elif path == ("tasks",) and rest:
            path, tag = (*path, rest[0]), rest[1:2]
            place = _Place(path, TASK_TYPES[str(tag[0])] if tag else Section, "a mapping with name and type in it")
            rest = rest[2:]
        else:
            named = get_origin(field.annotation) is dict
            item = [step for step in rest[:1] if isinstance(step, int) or named]
            return _Place((*path, *item), place.section, field.description or "")
    return place


def _told(found: ErrorDetails, place: _Place, document: Document) -> tuple[KeyPath, str]:
    kind, value = found["type"], found["input"]
    if kind == "extra_forbidden":
        return place.path, f"unknown key; {_key_remedy(str(place.path[-1]), place.section)}"
    if kind == "missing":
        return place.path, f"is missing; write {place.want}"
    if kind == "union_tag_not_found":
        return (*place.path, "type"), f"is missing; write {', '.join(TASK_TYPES)}"
    if kind == "union_tag_invalid":
        tag = str(found["ctx"]["tag"])
        return (*place.path, "type"), f"{tag!r} is no type of task; {nearest(tag, tuple(TASK_TYPES))}"
    if kind == "value_error":
        return place.path, str(found["ctx"]["error"])
    if value in ((), "", None) and not _written(place, document):
        return place.path, f"is empty; write {place.want}"
    if kind == "string_type":
        return place.path, _quotes(value, place, document)
    return place.path, f"{_shown(value)} does not fit; write {place.want}{_only_text(place, document)}"


def _only_text(place: _Place, document: Document) -> str:
    """A hint for those who let an environment variable fill in a number."""
    names = document.variables.get(place.path)
    if not names:
        return ""
    typed = PREFIX + "__".join(map(str, place.path)).upper()
    return f" (what ${{{names[0]}}} fills in is text; {typed} takes numbers and switches)"


def _quotes(value: Any, place: _Place, document: Document) -> str:
    """Text was wanted, and YAML read something else: most often a label that needs quotes."""
    if isinstance(value, dict) and len(value) == 1 and list(value.values()) == [None]:
        text, what = f"{{{next(iter(value))}}}", "a mapping"
    elif value is None or isinstance(value, (bool, int, float)):
        text = _written(place, document)
        what = "no value" if value is None else "a truth value" if isinstance(value, bool) else "a number"
    else:
        return f"{_shown(value)} does not fit; write {place.want}"
    return f'{text} is {what} to YAML, and text is wanted; put it in quotes: "{text}"'


def _written(place: _Place, document: Document) -> str:
    """The scalar as the file has it; a lone one in place of a list stands a step higher."""
    return document.written.get(place.path) or document.written.get(place.path[:-1], "")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key_remedy(key: str, section: type[Section]) -> str:
    known = tuple(section.model_fields)
    remedy = nearest(key, known)
    home = _home(key)
    return f"it belongs in {home}; {remedy}" if home and not remedy.startswith("did you mean") else remedy


def _home(key: str) -> str | None:
    """The part of a manifest that does know ``key``."""
    for name, field in Manifest.model_fields.items():
        part = field.annotation
        if isinstance(part, type) and issubclass(part, Section) and key in part.model_fields:
            return name
    types = [name for name, task in TASK_TYPES.items() if key in task.model_fields]
    return f"a task of type {' or '.join(types)}" if types else None
