"""The program as tests start it, in a process of its own."""

from __future__ import annotations

import sys

#: What goes before a command line's words: this Python's program, installed or not.
COMMAND = (sys.executable, "-c", "from photon.cli import main; main()")
