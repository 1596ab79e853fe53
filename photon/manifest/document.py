"""A YAML file as plain values, with the line of every key and the text of every scalar as it was written.

YAML 1.2, core schema: ``yes``, ``2025-06-21`` and ``1_000`` are text, ``012`` and ``1.10`` are numbers. Knows nothing
of manifests; what is wrong with the YAML itself comes back as problems, never as an exception of the parser's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from photon.errors import UsageError
from photon.manifest.problems import KeyPath, ManifestError, Problem

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"(?P<dec>[-+]?[0-9]+)|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"(?P<sign>[-+]?)\.(?P<name>inf|Inf|INF|nan|NaN|NAN)")
_CORE_TAGS = "tag:yaml.org,2002:"
#: Levels of lists and mappings, and characters of a number, beyond which a file is no manifest of anyone's.
_DEEPEST, _LONGEST_NUMBER = 50, 1000
_TOO_DEEP = f"nests deeper than {_DEEPEST} levels; check brackets and indentation"


@dataclass
class Document:
    """``data`` is the file as dicts, lists and scalars. Lines count from 1.

    ``origins`` says which override a value came from instead, ``variables`` which environment variables are in a text.
    """

    file: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    variables: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of the key at ``path``, or of the nearest key around it; None in an empty file."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path)

    def origin(self, path: KeyPath) -> str | None:
        """The override that gave the key at ``path``, or the nearest key around it; None for one of the file's own."""
        while path and path not in self.origins and path not in self.lines:
            path = path[:-1]
        return self.origins.get(path)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """What is wrong at ``path``, with the place that it was given in."""
        origin = self.origin(path)
        return Problem(path, message, self.line(path) if origin is None else None, origin)

    @classmethod
    def read(cls, path: str | Path) -> Document:
        """Raises ``UsageError`` when there is no such file, ``ManifestError`` when it is not YAML."""
        name = str(path)
        try:
            text = Path(path).read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ManifestError(name, [Problem((), "is not UTF-8 text; save it as UTF-8", 1)]) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"cannot read the manifest {name}: {reason}; give the path of a YAML file") from error
        return cls.parse(text, name)

    @classmethod
    def parse(cls, text: str, file: str = "manifest") -> Document:
        """Raises ``ManifestError`` when ``text`` is not YAML or too large; other problems are left in ``problems``."""
        made = cls(file)
        try:
            root = YAML(typ="safe", pure=True).compose(text)
        except MarkedYAMLError as error:
            raise ManifestError(file, [_syntax_problem(error)]) from error
        except YAMLError as error:
            raise ManifestError(file, [Problem((), f"is not YAML: {error}", 1)]) from error
        except RecursionError:
            raise ManifestError(file, [Problem((), _TOO_DEEP, 1)]) from None
        if root is not None:
            made.data = made._value(root, (), ())
        return made

    def _value(self, node: Node, path: KeyPath, inside: tuple[Node, ...]) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if any(node is outer for outer in inside):
            self._complain(path, "an alias that holds itself; write the value out")
            return None
        if len(inside) > _DEEPEST:
            raise ManifestError(self.file, [Problem((), _TOO_DEEP, node.start_mark.line + 1)])
        if not str(node.tag).startswith(_CORE_TAGS):
            self._complain(path, f"tag {node.tag} is not known; leave it out")
        if isinstance(node, MappingNode):
            return self._mapping(node, path, (*inside, node))
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, i), (*inside, node)) for i, item in enumerate(node.value)]
        text = str(node.value)
        if getattr(node, "style", None) is not None or node.tag == f"{_CORE_TAGS}str":
            return text
        self.written[path] = text
        try:
            return plain_scalar(text)
        except ValueError as error:
            raise ManifestError(self.file, [Problem(path, str(error), node.start_mark.line + 1)]) from None

    def _mapping(self, node: MappingNode, path: KeyPath, inside: tuple[Node, ...]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                self.problems.append(Problem(path, "a key must be one word, not a list or mapping", line))
                continue
            here = (*path, key.value)
            if key.value == "<<" and key.style is None:
                told = "YAML 1.2 has no merge keys; write out here what it would bring in"
                self.problems.append(Problem(path, told, line))
                continue
            if key.value in made:
                first = self.lines[here]
                self.problems.append(Problem(here, f"is given twice, first on line {first}; keep one of them", line))
                continue
            self.lines[here] = line
            made[key.value] = self._value(value, here, inside)
        return made

    def _complain(self, path: KeyPath, message: str) -> None:
        self.problems.append(self.problem(path, message))


def plain_scalar(text: str) -> Any:
    """What an unquoted scalar means in YAML 1.2's core schema: None, bool, int, float, or the text itself.

    Raises ``ValueError``, with a remedy, for a number beyond measure.
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if found := _INT.fullmatch(text):
        if len(text) > _LONGEST_NUMBER:
            raise ValueError(f"a number of {len(text)} digits; write a smaller one, or put text in quotes")
        base = {"dec": 10, "oct": 8, "hex": 16}[found.lastgroup or "dec"]
        return int(found[found.lastgroup or "dec"], base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if found := _SPECIAL.fullmatch(text):
        return float(found["sign"] + found["name"].lower())
    return text


def _syntax_problem(error: MarkedYAMLError) -> Problem:
    """The parser's complaint with what to do about it: most are a tab, a missing quote or a wrong indent."""
    said = str(error.problem or error.context or "not YAML")
    mark = error.problem_mark or error.context_mark
    if "'\\t'" in said:
        said, remedy = "a tab where YAML wants spaces", "indent with spaces"
    elif "mapping values are not allowed" in said:
        said, remedy = "a second ': ' on one line, or a wrong indent", 'put text that holds ": " in quotes'
    elif "cannot start any token" in said:
        remedy = "put text that begins with this character in quotes"
    elif "undefined alias" in said:
        remedy = "put text that begins with * in quotes"
    elif "another document" in said:
        said, remedy = "a second document begins here", "keep one manifest a file, without a second ---"
    elif "quoted scalar" in str(error.context):
        remedy = "close the quote, or double a backslash that is meant"
    elif "expected" in said:
        remedy = 'check indentation and brackets; text that begins with { or [ needs quotes: "{column} ..."'
    else:
        remedy = "check indentation, brackets and quotes around here"
    return Problem((), f"{said}; {remedy}", mark.line + 1 if mark else 1)
