"""A hub on this machine: data set repositories in memory, behind the few calls that ``datasets`` makes to read them. It
can be busy: answer 429 or 5xx for a while.

Not spoken: uploads, authentication, pagination, Xet. Point HF_ENDPOINT at ``url`` before huggingface_hub is imported,
which means in a new process.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Hub:
    """``repos``: the files of each data set. All have one commit, ``sha``, of which ``revisions`` are names."""

    repos: Mapping[str, Mapping[str, bytes]]
    revisions: tuple[str, ...] = ("v1",)
    sha: str = "0123456789abcdef0123456789abcdef01234567"
    url: str = ""
    requests: list[str] = field(default_factory=list)
    """What was asked: "GET /path"."""
    busy: dict[str, list[tuple[int, Mapping[str, str]]]] = field(default_factory=dict)
    """By a verb (revision, tree, resolve, paths-info), a revision or a path: statuses and headers to answer with first,
    one a request."""
    answered: list[tuple[float, str, int]] = field(default_factory=list)
    """When (``time.monotonic``), the request's path, and the status."""


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits 40 ms for its header's acknowledgement

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def answer(self, body: bytes) -> None:
        hub, url = self.hub, urlsplit(self.path)
        hub.requests.append(f"{self.command} {self.path}")
        path = unquote(url.path)
        if path == "/api/agent-harnesses":
            return self.send_json({})
        for repo, files in hub.repos.items():
            for prefix in (f"/api/datasets/{repo}/", f"/datasets/{repo}/"):
                if path.startswith(prefix):
                    verb, revision, rest = [*path.removeprefix(prefix).split("/", 2), ""][:3]
                    busy = hub.busy.get(rest) or hub.busy.get(verb) or hub.busy.get(revision)
                    if busy:
                        return self.send(busy[0][0], b"busy", busy.pop(0)[1])
                    if revision not in (*hub.revisions, hub.sha):
                        return self.send_missing("RevisionNotFound")
                    return self.answer_repo(repo, files, verb, rest, parse_qs(url.query), body)
        return self.send_missing("RepoNotFound")

    def answer_repo(
        self, repo: str, files: Mapping[str, bytes], verb: str, path: str, query: Mapping[str, list[str]], body: bytes
    ) -> None:
        if verb == "resolve" and path in files:
            return self.send_file(files[path])
        if verb == "revision":
            siblings = [{"rfilename": name} for name in files]
            info = {"id": repo, "sha": self.hub.sha, "private": False, "tags": [], "siblings": siblings}
            return self.send_json(info)
        if verb == "tree":
            recursive = query.get("recursive", ["false"])[0].lower() == "true"
            return self.send_json(_tree(files, f"{path}/" if path else "", recursive))
        if verb == "paths-info":
            fields = json.loads(body) if body[:1] == b"{" else parse_qs(body.decode())
            return self.send_json([_entry(path, files[path]) for path in fields["paths"] if path in files])
        return self.send_missing("EntryNotFound")

    def send_file(self, data: bytes) -> None:
        whole, status = len(data), 200
        tag = hashlib.sha1(data).hexdigest()
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": self.hub.sha, "Accept-Ranges": "bytes"}
        if span := self.headers.get("Range"):
            first, _, last = span.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1, whole) if last else whole
            data, status = data[int(first) : end], 206
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{whole}"
        self.send(status, data, headers)

    def send_json(self, content: object) -> None:
        self.send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def send_missing(self, code: str) -> None:
        self.send(404, b"", {"X-Error-Code": code, "X-Repo-Commit": self.hub.sha})

    def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.hub.answered.append((time.monotonic(), self.path, status))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _tree(files: Mapping[str, bytes], folder: str, recursive: bool) -> list[dict[str, object]]:
    below = [path for path in files if path.startswith(folder)]
    folders = {path[:n] for path in below for n in range(len(folder), len(path)) if path[n] == "/"}
    entries = [_entry(path, files[path]) for path in below]
    entries += [{"type": "directory", "path": path, "size": 0, "oid": path} for path in sorted(folders)]
    return [entry for entry in entries if recursive or "/" not in str(entry["path"])[len(folder) :]]


def _entry(path: str, data: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
