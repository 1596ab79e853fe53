"""One picture from a URL: within a time and a size, asked for again where that may help, and left with a code.

The standard library's client, so that nothing more has to be installed. Only http and https, redirects included; no
credentials are sent.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from photon.data.patience import PASSING, backoff, retry_after
from photon.errors import ImageError

_BLOCK_BYTES = 1 << 16
_ALLOWED = "%/:?#[]@!$&'()*+,;=~"  # stays as it is in a URL; the rest is put into percent signs


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """``parallel``: downloads at a time. ``timeout``: seconds for one attempt. ``retries``: further attempts.
    ``max_wait``: seconds, the longest pause between two that is worth it. ``max_bytes``: a picture's largest size."""

    parallel: int = 16
    timeout: float = 30.0
    retries: int = 4
    max_wait: float = 60.0
    max_bytes: int = 100_000_000


class _Passing(Exception):
    """An attempt failed, another may not. ``pause``: seconds that the server asks for."""

    def __init__(self, told: str, pause: float | None = None) -> None:
        super().__init__(told)
        self.told = told
        self.pause = pause


class Downloader:
    """Thread safe. A host that asks to be left alone is left alone by all threads."""

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._paused_until: dict[str, float] = {}
        self._opener = _opener()

    def stop(self) -> None:
        """Downloads in progress end soon, with an error."""
        self._stopped.set()

    def get(self, url: str) -> bytes:
        """The bytes at ``url``. Raises ``ImageError``: IMAGE_MISSING (404, 410, not a URL), IMAGE_TOO_LARGE
        (``max_bytes``), IMAGE_UNREACHABLE (anything else, in the end)."""
        url = urllib.parse.quote(url, safe=_ALLOWED)
        try:
            parts = urllib.parse.urlsplit(url)
            host = parts.netloc
        except ValueError as error:
            raise ImageError("IMAGE_MISSING", f"not a URL ({error}): {url:.300}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise ImageError("IMAGE_MISSING", f"not an http or https URL: {url:.300}")
        for attempt in range(self._policy.retries + 1):
            self._wait(host)
            try:
                return self._attempt(url)
            except _Passing as passing:
                last = passing
            if last.pause is not None:
                self._leave_alone(host, last, url)
            elif attempt < self._policy.retries:
                self._stopped.wait(backoff(attempt, self._policy.max_wait))
        raise ImageError("IMAGE_UNREACHABLE", f"{url:.300}: {last.told}, at the last of {attempt + 1} attempts")

    def _attempt(self, url: str) -> bytes:
        end = time.monotonic() + self._policy.timeout
        request = urllib.request.Request(url, headers={"User-Agent": "photon-batch", "Accept": "image/*, */*;q=0.5"})
        try:
            with self._opener.open(request, timeout=self._policy.timeout) as answer:
                return self._body(answer, end)
        except urllib.error.HTTPError as error:
            with error:
                told = f"HTTP {error.code} {error.reason}"
                if error.code in PASSING:
                    raise _Passing(told, retry_after(error.headers.get("Retry-After"))) from error
            code = "IMAGE_MISSING" if error.code in (404, 410) else "IMAGE_UNREACHABLE"
            raise ImageError(code, f"{url:.300}: {told}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ImageError("IMAGE_UNREACHABLE", f"{url:.300}: {reason}") from error
            raise _Passing(f"{reason} ({type(error).__name__})") from error
        except ValueError as error:  # a host or port that cannot be
            raise ImageError("IMAGE_MISSING", f"not a URL ({error}): {url:.300}") from error

    def _body(self, answer: http.client.HTTPResponse, end: float) -> bytes:
        promised = answer.length
        self._check_size(promised or 0)
        body = bytearray()
        while block := answer.read(_BLOCK_BYTES):
            body += block
            self._check_size(len(body))
            if time.monotonic() > end:
                raise _Passing(f"not there after {self._policy.timeout:g} s")
            if self._stopped.is_set():
                raise ImageError("IMAGE_UNREACHABLE", "the run ended before the download did")
        if promised is not None and len(body) < promised:
            raise _Passing(f"{len(body)} of {promised} bytes came")
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self._policy.max_bytes:
            told = f"{size} bytes or more, which is more than input.urls.max_bytes = {self._policy.max_bytes}"
            raise ImageError("IMAGE_TOO_LARGE", told)

    def _leave_alone(self, host: str, busy: _Passing, url: str) -> None:
        pause = busy.pause or 0.0
        if pause > self._policy.max_wait:
            told = f"{busy.told}, and asks to wait {pause:.0f} s, more than input.urls.max_wait"
            raise ImageError("IMAGE_UNREACHABLE", f"{url:.300}: {told}")
        with self._lock:
            self._paused_until[host] = max(self._paused_until.get(host, 0.0), time.monotonic() + pause)

    def _wait(self, host: str) -> None:
        while (left := self._paused_until.get(host, 0.0) - time.monotonic()) > 0 and not self._stopped.is_set():
            self._stopped.wait(left)
        if self._stopped.is_set():
            raise ImageError("IMAGE_UNREACHABLE", "the run ended before the download began")


def _opener() -> urllib.request.OpenerDirector:
    """A client without the handlers for files, ftp and data that the default one has."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        *(urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler),
        *(urllib.request.HTTPRedirectHandler, urllib.request.HTTPDefaultErrorHandler),
        *(urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler),
    ):
        opener.add_handler(handler())
    return opener
