"""A section in a process of its own: an error that the device does not survive costs that section and no other.

The process is a fork, since importing torch anew for each section would take a good part of the day. So this process
itself must neither touch CUDA nor compute.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any


class SectionError(Exception):
    """The section did not come to its end. The message says how it ended."""


def isolated(make: Callable[[], Iterator[Any]], *, deadline: float, grace: float) -> Iterator[Any]:
    """What ``make()`` yields in another process, as it comes.

    Raises ``SectionError`` when that raised, died, or went on for ``grace`` seconds past ``deadline`` (of the monotonic
    clock) and was killed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(make, sender))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy's, which does not use them by now
        process.start()
    sender.close()
    ended = False
    try:
        while not ended:
            if not receiver.poll(max(0.0, deadline + grace - time.monotonic())):
                raise SectionError("killed: it did not end in time")
            try:
                what, value = receiver.recv()
            except EOFError:
                process.join()
                raise SectionError(f"its process died with exit code {process.exitcode}") from None
            if what == "raised":
                raise SectionError(value)
            ended = what == "ended"
            if not ended:
                yield value
    finally:
        receiver.close()
        process.join(timeout=5.0 if ended else 0.0)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(make: Callable[[], Iterator[Any]], sender: Connection) -> None:
    try:
        for value in make():
            sender.send(("row", value))
        sender.send(("ended", None))
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        sender.send(("raised", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"[:2000]))
