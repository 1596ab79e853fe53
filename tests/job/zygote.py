"""Runs of ``photon-batch`` that can be killed by the hundred: a process that has imported everything and started no
thread forks one child for each, in place of an interpreter that takes a second to start.

One JSON object a line comes in: {"arguments": [...], "kill_after": seconds or null, "at": [what, n] or null}. ``at``
kills the child itself, by SIGKILL, just before or after its n-th step of that kind: see ``_die_at``. One line goes out:
{"signal": ..., "exit": ..., "seconds": ...}.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Zygote:
    """For tests: starts the process, and asks it for runs in the folder it was started in."""

    def __init__(self) -> None:
        root = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.job.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )

    def run(
        self, folder: Path, *arguments: str, kill_after: float | None = None, at: tuple[str, int] | None = None
    ) -> dict[str, Any]:
        """How one run in ``folder`` ended: its exit code, or None and SIGKILL."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"folder": str(folder), "arguments": arguments, "kill_after": kill_after, "at": at}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        made: dict[str, Any] = json.loads(self._process.stdout.readline())
        return made

    def close(self) -> None:
        self._process.communicate(timeout=10)


def _main() -> None:
    import photon.cli  # everything that a run of the null engine imports, and nothing that starts a thread
    import photon.data.parquet
    import photon.engine.null
    import photon.job.run
    import photon.manifest.load  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        start = time.monotonic()
        child = os.fork()
        if not child:
            _child(order)
        if order["kill_after"] is not None:
            time.sleep(order["kill_after"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        told = {
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "seconds": time.monotonic() - start,
        }
        print(json.dumps(told), flush=True)


def _child(order: dict[str, Any]) -> None:
    code = 99
    try:
        os.chdir(order["folder"])
        log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if order["at"] is not None:
            _die_at(*order["at"])
        sys.argv = ["photon-batch", *order["arguments"]]
        from photon.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _die_at(what: str, number: int) -> None:
    """``before fsync`` and ``after fsync`` of the n-th part, ``after rename`` of it, ``after folder`` sync, ``in
    record`` with half a line written, ``after record``; ``after plan``."""
    left = number

    def die_when(hit: bool) -> None:
        nonlocal left
        left -= hit
        if hit and left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def patched(name: str, before: Callable[..., bool] | None, after: Callable[..., bool] | None) -> None:
        honest = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            if before is not None:
                die_when(before(*args))
            made = honest(*args, **options)
            if after is not None:
                die_when(after(*args))
            return made

        setattr(os, name, call)

    def path_of(handle: int) -> str:
        return os.readlink(f"/proc/self/fd/{handle}")

    def is_part(handle: int, *_: Any) -> bool:
        return "/data/" in path_of(handle) and ".part-" in path_of(handle)

    def is_data_folder(handle: int, *_: Any) -> bool:
        return stat.S_ISDIR(os.fstat(handle).st_mode) and path_of(handle).endswith("/data")

    def is_record(handle: int, *_: Any) -> bool:
        return "/ledger/shard-" in path_of(handle)

    def tear(handle: int, *_: Any) -> bool:
        """Half of what was just written to the ledger is lost with the machine."""
        if not is_record(handle) or left:
            return is_record(handle)
        os.truncate(path_of(handle), os.fstat(handle).st_size - 40)
        return True

    points: dict[str, Callable[[], None]] = {
        "before fsync": lambda: patched("fsync", is_part, None),
        "after fsync": lambda: patched("fsync", None, is_part),
        "after rename": lambda: patched("replace", None, lambda source, target: "/data/part-" in str(target)),
        "after folder": lambda: patched("fsync", None, is_data_folder),
        "in record": lambda: patched("fsync", tear, None),
        "after record": lambda: patched("fsync", None, is_record),
        "after plan": lambda: patched("link", None, lambda source, target: str(target).endswith("plan.json")),
    }
    points[what]()


if __name__ == "__main__":
    _main()
