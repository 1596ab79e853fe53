"""The commands of docs/quickstart.md, run as they stand, and what they print, without what differs from run to run.

    python -m tests.docs.quickstart

writes docs/transcripts/quickstart.txt anew, to be looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, blocks, section, text_of

TRANSCRIPT = ROOT / "docs/transcripts/quickstart.txt"
#: The sections whose commands are run: installing, and the real model, take gigabytes.
RUN = ("2. Twelve photos", "3. A manifest", "4. Four rows, then all", "5. Look at them", "6. Take them along")
#: Lines that only some runs have, or that time alone decides.
_LEFT_OUT = re.compile(
    r"photon-batch: (\d+ rows took|chunks of) .*|\d+ of \d+ images, .*|(device busy|[\d.]+ requests to an encoded) .*"
)
#: What differs from machine to machine, the model's answers to the last bit included.
_MASKED = (
    (re.compile(r"^  \S+ -c "), "  python -c "),
    (re.compile(r"\d+ objects and points|\d+ boxes"), lambda found: re.sub(r"\d+", "N", found[0])),
    (re.compile(r"\d+\.\d+ (s|images/s|requests/s|rows/s|kB|MB)\b"), r"N \1"),
    (re.compile(r"\d+:\d\d:\d\d ago"), "N ago"),
    (re.compile(r"process \d+ on \S+"), "process N on HOST"),
)


def commands() -> Iterator[str]:
    """One by one; a here-document goes with its command."""
    page = text_of("docs/quickstart.md")
    for heading in RUN:
        for block in blocks(section(page, heading), "sh"):
            yield from _split(block.text)


def _split(text: str) -> Iterator[str]:
    lines = iter(text.splitlines())
    for line in lines:
        end = re.search(r"<<'(\w+)'", line)
        command = [line]
        while end and command[-1] != end[1]:
            command.append(next(lines))
        yield "\n".join(command)


def run_all(folder: Path) -> Iterator[tuple[str, str]]:
    """Each command and what it printed on both streams, masked. Raises ``AssertionError`` for one that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    for command in commands():
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        yield command, masked(done.stdout)


def masked(printed: str) -> str:
    kept = [line for line in printed.splitlines() if not _LEFT_OUT.fullmatch(line)]
    for pattern, stand_in in _MASKED:
        kept = [pattern.sub(stand_in, line) for line in kept]
    return "\n".join(kept)


def transcript(ran: Iterator[tuple[str, str]]) -> str:
    return "".join(f"$ {prompted(command)}\n" + (f"{printed}\n" if printed else "") for command, printed in ran)


def prompted(command: str) -> str:
    """As a shell shows it, later lines behind a mark of their own."""
    return command.replace("\n", "\n> ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        TRANSCRIPT.write_text(transcript(run_all(Path(folder))), encoding="utf-8")
