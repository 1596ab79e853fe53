"""From a clone and twelve pictures to a report, by nothing but the README's commands: what CI does on a bare machine.

    python -m tests.docs.clone [--keep] [--installed]

copies this tree, puts twelve pictures into ``photos``, and types the README's commands into one shell, from
``make demo`` to the report. Prints what they print, and how long the way from the pictures to the report took.
``--keep`` writes it to docs/transcripts/readme.txt, to be looked at, without what differs from run to run. With
``--installed`` the copy uses what this tree has installed in ``.venv``, which saves minutes.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from tests.docs.pages import ROOT, section, text_of
from tests.docs.shell import commands_in, masked

TRANSCRIPT = ROOT / "docs/transcripts/readme.txt"
HEADING = "From a folder of photos to a report"
INSTALL = "make demo"


def commands() -> Iterator[str]:
    """``make demo``, then those of the section."""
    yield INSTALL
    yield from commands_in(section(text_of("README.md"), HEADING))


def copy(folder: Path) -> None:
    """The tree into ``folder``, which is new, without what was installed or made in it."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "outputs", "__pycache__", ".*_cache"))


def put_photos(folder: Path) -> None:
    """Twelve of the demo's scenes into ``folder``/photos."""
    (folder / "photos").mkdir()
    scenes = pq.read_table(ROOT / "photon/assets/demo/scenes.parquet", columns=["name", "image"])
    for row in scenes.slice(0, 12).to_pylist():
        (folder / "photos" / row["name"]).with_suffix(".jpg").write_bytes(row["image"]["bytes"])


def typed(folder: Path) -> tuple[str, float]:
    """What a shell shows, and the seconds after installing. Ends the process at the first command that fails."""
    lines = [f"echo {shlex.quote(f'$ {command}')}\n{command}\n" for command in commands()]
    script = "set -e; exec 2>&1\n" + "".join(lines)
    # As from a shell of its own: without what this process was started with.
    names = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS")}
    printed, begun = [], 0.0
    with subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=names, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout is not None
        for line in shell.stdout:
            print(line, end="", flush=True)
            printed.append(line)
            if not begun and line.startswith("$ ") and line[2:].strip() != INSTALL:
                begun = time.monotonic()
        seconds = time.monotonic() - begun
    if shell.returncode:
        sys.exit(f"the command above ended with {shell.returncode}")
    return "".join(printed), seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clone"
        copy(folder)
        put_photos(folder)
        if "--installed" in sys.argv[1:]:
            (folder / ".venv").symlink_to(ROOT / ".venv")
        printed, seconds = typed(folder)
        assert (folder / "outputs/cars/report.html").stat().st_size > 10_000
    print(f"from twelve pictures to a report: {seconds:.0f} s after installing")
    if "--keep" in sys.argv[1:]:
        kept = re.sub(r"^WARNING: .*\n", "", printed, flags=re.MULTILINE)  # pip's, of the index that it was told to use
        TRANSCRIPT.write_text(masked(kept).replace(str(folder), "CLONE") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
