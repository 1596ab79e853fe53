"""HTML put together from elements: every text and attribute is escaped, unless it is ``Markup`` already."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

_VOID = frozenset(("img", "input", "meta", "br", "hr"))
#: Control characters, which HTML has no way to write; the browser shows the box of one that it cannot draw.
_CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160)], "\ufffd")


class Markup(str):
    """A piece of HTML. Only ``element``, ``join`` and our own templates make it, never user data."""

    __slots__ = ()


Child: TypeAlias = str | None


def escaped(text: str) -> Markup:
    """``text`` as it can stand between tags and in an attribute."""
    return Markup(html.escape(text.translate(_CONTROLS)))


def element(name: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """``<name attributes>children</name>``; None is left out. ``class_`` is class, ``data_t`` is data-t; an attribute
    that is None or False is left out, one that is True has no value."""
    words = [name]
    for key, value in attributes.items():
        spelt = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(spelt)
        elif value is not None and value is not False:
            words.append(f'{spelt}="{escaped(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return Markup(opened if name in _VOID else f"{opened}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """The pieces in a row, texts escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escaped(child) for child in children if child))
