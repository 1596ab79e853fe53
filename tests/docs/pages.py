"""README.md and the pages of docs as tests read them: prose, fenced blocks, links, headings, tables."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """``line`` is the number of the fence's line."""

    line: int
    language: str
    text: str


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> list[Block]:
    """The fenced blocks of a page, or those in one of ``languages``."""
    found = [Block(text.count("\n", 0, m.start()) + 1, m[2], m[3]) for m in _FENCE.finditer(text)]
    return [block for block in found if not languages or block.language in languages]


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text)


def inline_code(text: str) -> list[str]:
    """What stands between backticks in the prose, on one line each."""
    return [" ".join(code.split()) for code in _CODE.findall(prose(text))]


def links(text: str) -> list[str]:
    """Where the links and pictures of a page lead, addresses on the web left out."""
    found = _LINK.findall(_CODE.sub("", prose(text)))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    made = set()
    for heading in re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        made.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return made


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no heading {heading}"
    return found[1]


def table(text: str) -> list[list[str]]:
    """The rows of the first table in ``text``, its head left out, cells without backticks."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows, "no table"
    return [[cell.strip().replace("`", "") for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])] for row in rows[2:]]


def commands(block: str) -> Iterator[list[str]]:
    """The arguments of every call of photon-batch in a shell block, or in one of what a terminal shows."""
    for line in block.replace("\\\n", " ").splitlines():
        if not re.search(r"photon-batch\s", line):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        for start, word in enumerate(words):
            if Path(word).name == "photon-batch":
                end = next((n for n in range(start, len(words)) if re.fullmatch(r"[();<>|&]+", words[n])), None)
                yield words[start + 1 : end]
