"""``${NAME}`` in the texts of a manifest: the environment variable of that name. ``$${`` stands for ``${`` itself.

What is filled in stays text, whatever it looks like; keys and the values of overrides are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from photon.manifest.document import Document
from photon.manifest.problems import KeyPath, ManifestError

_MARK = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<name>[^{}]*)(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill_variables(document: Document, environment: Mapping[str, str]) -> None:
    """Fills every text in. Raises ``ManifestError`` where one names no variable: what it hides cannot be judged."""
    known = len(document.problems)
    document.data = _filled(document, document.data, (), environment)
    if len(document.problems) > known:
        raise ManifestError(document.file, document.problems)


def _filled(document: Document, value: Any, path: KeyPath, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(document, item, (*path, key), environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(document, item, (*path, i), environment) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    names: list[str] = []

    def fill(mark: re.Match[str]) -> str:
        name = mark["name"]
        if name is None:
            return "${"
        if not mark["end"] or not _NAME.fullmatch(name):
            told = f"{mark[0]} names no environment variable; write ${{NAME}}, or $${{ for the text itself"
        elif name not in environment:
            told = f"the environment variable {name} is not set; set it, or write $${{{name}}} for the text itself"
        else:
            names.append(name)
            return environment[name]
        document.problems.append(document.problem(path, told))
        return ""

    filled = _MARK.sub(fill, value)
    if names:
        document.variables[path] = tuple(dict.fromkeys(names))
    return filled
