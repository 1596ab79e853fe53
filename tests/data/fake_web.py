"""A web server on this machine: pictures by path, and for each path what it answers before it gives the picture."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


@dataclass
class Web:
    """``pages`` by path. ``first``: (status, headers) by path, each given once before the page; status 0 hangs up."""

    pages: Mapping[str, bytes]
    first: dict[str, list[tuple[int, Mapping[str, str]]]] = field(default_factory=dict)
    slow: float = 0.0
    """Seconds before each answer."""
    cut: frozenset[str] = frozenset()
    """Paths of which only half of the body comes."""
    url: str = ""
    asked: list[tuple[float, str]] = field(default_factory=list)
    """When (``time.monotonic``) and for what path."""
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def serve_web(web: Web) -> Iterator[Web]:
    class Handler(_Handler):
        pass

    Handler.web = web
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    web: Web

    def do_GET(self) -> None:
        web, path = self.web, unquote(self.path)
        with web._lock:
            web.asked.append((time.monotonic(), path))
            web._now += 1
            web.most_at_once = max(web.most_at_once, web._now)
            first = web.first[path].pop(0) if web.first.get(path) else None
        time.sleep(web.slow)
        with web._lock:
            web._now -= 1
        if first is not None:
            return self.answer(*first, b"") if first[0] else self.connection.close()
        if path not in web.pages:
            return self.answer(404, {}, b"")
        return self.answer(200, {}, web.pages[path], len(web.pages[path]) // 2 if path in web.cut else None)

    def answer(self, status: int, headers: Mapping[str, str], body: bytes, only: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # who asked has gone
            self.wfile.write(body[:only])

    def log_message(self, format: str, *args: object) -> None:
        pass
