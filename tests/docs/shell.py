"""The shell blocks of pages, command by command: run as they stand, and what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import blocks

#: Lines that only some runs have, or that time alone decides.
_LEFT_OUT = re.compile(
    r"photon-batch: (\d+ rows took|chunks of) .*|\d+ of \d+ images, .*|(device busy|[\d.]+ requests to an encoded) .*"
)
#: What differs from machine to machine, the model's answers to the last bit included.
_MASKED = (
    (re.compile(r"^  \S+ -c "), "  python -c "),
    (re.compile(r"[\d,]+ objects and points|[\d,]+ boxes"), lambda found: re.sub(r"[\d,]+", "N", found[0])),
    (re.compile(r"\d+\.\d+ (s|images/s|requests/s|rows/s|kB|MB)\b"), r"N \1"),
    (re.compile(r"\d+:\d\d:\d\d ago"), "N ago"),
    (re.compile(r"process \d+ on \S+"), "process N on HOST"),
)


def split(text: str) -> Iterator[str]:
    """The commands of a block, one by one, without comments; a here-document, or a line that goes on, is of its
    command."""
    lines = iter(text.splitlines())
    for line in lines:
        command = [re.sub(r"\s+#\s.*$", "", line)]
        end = re.search(r"<<'(\w+)'", line)
        while (end and command[-1] != end[1]) or command[-1].endswith("\\"):
            command.append(next(lines))
        if command != [""]:
            yield "\n".join(command)


def commands_in(text: str) -> Iterator[str]:
    """Of all shell blocks of a page, or of a part of one."""
    for block in blocks(text, "sh"):
        yield from split(block.text)


def run(command: str, folder: Path, **variables: str) -> str:
    """What a command printed on both streams, in ``folder`` and with this Python's programs. Raises ``AssertionError``
    where it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def masked(printed: str) -> str:
    kept = [line for line in printed.splitlines() if not _LEFT_OUT.fullmatch(line)]
    for pattern, stand_in in _MASKED:
        kept = [pattern.sub(stand_in, line) for line in kept]
    return "\n".join(kept)


def shown(command: str, printed: str) -> str:
    """As a terminal shows it, later lines of the command behind a mark of their own."""
    prompt = "\n> "
    return f"$ {command.replace(chr(10), prompt)}\n" + (f"{printed}\n" if printed else "")
