"""The reference of all keys, as Markdown, made from the schema: what docs/manifest.md holds between its two marks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from photon.manifest.schema import manifest_schema

_HEAD = "| key | default | what it is | what to write |\n|---|---|---|---|"
START, END = "<!-- made by: photon-batch schema --markdown -->", "<!-- end -->"
_TASK_HEAD = "| key | of | default | what it is | what to write |\n|---|---|---|---|---|"


def reference() -> str:
    """A table for each section, in the order of the file."""
    schema = manifest_schema()
    sections = schema["$defs"]
    plain = {key: field for key, field in schema["properties"].items() if "$ref" not in field and key != "tasks"}
    parts = ["### At the top", _table(plain, schema["required"])]
    for key, field in schema["properties"].items():
        if key == "tasks":
            tasks = [sections[_name(ref)] for ref in field["items"]["oneOf"]]
            parts += [f"### tasks\n{field['title']}, as a list. Each has a name and a type.", _task_table(tasks)]
        elif "$ref" in field:
            parts += _section(key, field, sections)
    return "\n\n".join(parts) + "\n"


def _section(key: str, field: Mapping[str, Any], sections: Mapping[str, Any]) -> list[str]:
    """The section's own table, and those of sections in it."""
    section = sections[_name(field)]
    parts = [f"### {key}\n{field['title']}.", _table(section["properties"], section.get("required", ()))]
    for inner, inside in section["properties"].items():
        if "$ref" in inside:
            parts += _section(f"{key}.{inner}", inside, sections)
    return parts


def _table(fields: Mapping[str, Any], required: Any) -> str:
    rows = [f"| `{key}` | {_default(field, key in required)} | {_told(field)} |" for key, field in fields.items()]
    return "\n".join([_HEAD, *rows])


def _task_table(tasks: list[dict[str, Any]]) -> str:
    """Keys that several types share come once."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for task in tasks:
        kind = task["properties"]["type"]["const"]
        for key, field in task["properties"].items():
            default = _default(field, key in task["required"])
            rows.setdefault((key, default, _told(field)), []).append(kind)
    shared = [
        f"| `{key}` | {'all' if len(kinds) == len(tasks) else ', '.join(kinds)} | {default} | {told} |"
        for (key, default, told), kinds in sorted(rows.items(), key=lambda row: (row[0][0] != "type", -len(row[1])))
    ]
    return "\n".join([_TASK_HEAD, *shared])


def _told(field: Mapping[str, Any]) -> str:
    """Names with underscores as code, since Markdown would read the underscores."""
    return re.sub(r"\w*_[\w.]*", r"`\g<0>`", f"{field['title']} | {field['description']}")


def _default(field: Mapping[str, Any], required: bool) -> str:
    if required:
        return "needed"
    return "" if "$ref" in field else f"`{json.dumps(field['default'])}`".replace('"', "")


def _name(ref: Mapping[str, Any]) -> str:
    return str(ref["$ref"]).rpartition("/")[2]
