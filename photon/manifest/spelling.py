"""Plain values as YAML on one line, that a manifest or --set can have: the way back from ``document``."""

from __future__ import annotations

import json
import re
from typing import Any

from photon.manifest.document import plain_scalar

#: Characters of text that may stand without quotes, inside of a list too; the first one is more particular.
_HARMLESS = re.compile(r"[\w./~(][\w./~*<>()@+=%$ :;!?-]*")


def spelt(value: Any) -> str:
    """``value``, quoted only where it has to be."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{spelt(key)}: {spelt(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(spelt, value)) + "]"
    if isinstance(value, str) and _stands_alone(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _stands_alone(text: str) -> bool:
    if not _HARMLESS.fullmatch(text) or ": " in text or text[-1] in " :":
        return False
    return len(text) < 1000 and plain_scalar(text) == text
