"""A headless Chromium to look at pages with, spoken to over its DevTools pipe: real keys, real pixels, no package."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import select
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0  # seconds for one answer, on a machine that is busy


class Browser:
    """One browser process. ``open`` gives a page of its own."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        (theirs_in, self._to), (self._from, theirs_out) = os.pipe(), os.pipe()
        arguments = [PROGRAM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]  # off the way of 3 and 4
        actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
        silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        self._pid = os.posix_spawn(PROGRAM, arguments, os.environ, file_actions=[*silent, *actions])
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self.send("Browser.close")
        os.waitpid(self._pid, 0)
        os.close(self._to)
        os.close(self._from)

    def open(self, file: Path, view: str = "", *, size: tuple[int, int] = (1280, 900), dark: bool = False) -> Page:
        """The page in ``file``, loaded; ``view`` is the part of its address after #."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Runtime", "Log", "Page", "Network"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        page.send("Page.navigate", url=file.absolute().as_uri() + view)
        self.wait(lambda event: event["method"] == "Page.loadEventFired" and event.get("sessionId") == session)
        return page

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        told = {"id": self._number, "method": method, "params": parameters}
        os.write(self._to, json.dumps(told | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def wait(self, wanted: Any) -> None:
        """Until an event has come that is ``wanted``."""
        seen = 0
        while not any(wanted(event) for event in self.events[seen:]):
            seen = len(self.events)
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], _PATIENCE)[0], "the browser does not answer"
            some = os.read(self._from, 1 << 20)
            assert some, "the browser has ended"
            self._rest += some
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


class Page:
    """What a test does with a page, as a person would, and what it sees there."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.send("Target.closeTarget", targetId=self._target)

    def ask(self, script: str) -> Any:
        """The value of a JavaScript expression, as plain values."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str, wanted: Any) -> Any:
        """The value of an expression as soon as it is ``wanted``, or what it is instead after a thousand turns of the
        page. For what a browser does a turn later, as it tells of closing."""
        for _ in range(1000):
            value = self.ask(script)
            if value == wanted:
                break
            self.ask("new Promise(done => setTimeout(done))")
        return value

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            number = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}[key]
            extra = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
            told = "keyDown" if extra else kind
            self.send("Input.dispatchKeyEvent", type=told, key=key, code=key, windowsVirtualKeyCode=number, **extra)

    def seen(self, selector: str) -> np.ndarray[Any, Any]:
        """[height, width, 3], uint8: what there is to see of the first element that ``selector`` finds."""
        place = self.ask(f"""(() => {{
            const {{left, top, width, height}} = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return {{x: left + scrollX, y: top + scrollY, width, height, scale: 1}};
        }})()""")
        shot = self.send("Page.captureScreenshot", clip=place, captureBeyondViewport=True)
        with Image.open(io.BytesIO(base64.b64decode(shot["data"]))) as picture:
            return np.asarray(picture.convert("RGB"))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the page was opened, and every request that left the page."""
        return [told for told in map(_complaint, self._browser.events) if told]


def _complaint(event: dict[str, Any]) -> str | None:
    what, told = event["method"], event["params"]
    if what == "Network.requestWillBeSent":
        url = told["request"]["url"]
        return None if url.startswith(("file:", "data:")) else f"asked for {url}"
    wrong = what in ("Runtime.exceptionThrown", "Log.entryAdded")
    wrong |= what == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning")
    return json.dumps(told) if wrong else None
