"""Labels of the truth that nobody asked for: other things, or the same ones spelled otherwise?"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection

_NEAR = 0.8  # of difflib: cats for cat, not car
_MOST = 100  # labels that are looked at for it, the most frequent


def respelled(theirs: Counter[str], asked: Collection[str]) -> dict[str, str]:
    """Which of ``theirs`` differ from a label of ``asked`` in case, blanks or a letter or two, and from which."""
    plain = {_plain(label): label for label in asked}
    found = {}
    for n, (label, _) in enumerate(theirs.most_common()):
        if label in asked:  # of another row
            continue
        near = [_plain(label)] if _plain(label) in plain else []
        if not near and n < _MOST:
            near = difflib.get_close_matches(_plain(label), plain, 1, _NEAR)
        if near:
            found[label] = plain[near[0]]
    return found


def listed(names: Collection[str]) -> str:
    """The first eight, and how many more."""
    told = list(names)
    return ", ".join(told[:8]) + (f" and {len(told) - 8} more" if len(told) > 8 else "")


def _plain(label: str) -> str:
    return " ".join(label.casefold().split())
