"""photon-batch: each command is one call into the library, in a file of its own.

Standard output carries what was asked for by --json, --help or --version and the tables of ``simulate``, ``eval`` and
``bench``, and nothing else; messages, the progress bar and the summary go to standard error.
Exit codes are those of ``photon.errors``, 3 for too many failed rows, 130 for an interrupt.
"""

from __future__ import annotations

# isort: off
# In the order of --help.
from photon.cli import run as run
from photon.cli import validate as validate
from photon.cli import preview as preview
from photon.cli import evaluate as evaluate
from photon.cli import simulate as simulate
from photon.cli import bench as bench

# isort: on
from photon.cli.app import app as app
from photon.cli.tell import PROGRAM


def main() -> None:
    """The console script."""
    app(prog_name=PROGRAM)
