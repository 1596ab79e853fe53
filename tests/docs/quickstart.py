"""The commands of docs/quickstart.md, run as they stand, and what they print, without what differs from run to run.

    python -m tests.docs.quickstart

writes docs/transcripts/quickstart.txt anew, to be looked at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, section, text_of
from tests.docs.shell import commands_in, masked, run, shown

TRANSCRIPT = ROOT / "docs/transcripts/quickstart.txt"
#: The sections whose commands are run: installing, and the real model, take gigabytes.
RUN = ("2. Twelve photos", "3. A manifest", "4. Four rows, then all", "5. Look at them", "6. Take them along")


def commands() -> Iterator[str]:
    page = text_of("docs/quickstart.md")
    for heading in RUN:
        yield from commands_in(section(page, heading))


def transcript(folder: Path) -> str:
    """Of the commands, run in ``folder``. Raises ``AssertionError`` for one that fails."""
    return "".join(shown(command, masked(run(command, folder))) for command in commands())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        TRANSCRIPT.write_text(transcript(Path(folder)), encoding="utf-8")
