"""hf:// URLs with their revision pinned: to a commit, so that every run and every position means the same rows."""

from __future__ import annotations

import re
from urllib.parse import unquote

from photon.data.patience import patiently
from photon.errors import UsageError

_URL = re.compile(
    r"hf://(?P<kind>datasets/|spaces/)?(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?"
    r"/(?P<path>.+)"
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = {"datasets/": "dataset", "spaces/": "space"}


def pin(url: str) -> str:
    """``url``, or a pattern, with its revision as a commit; the hub is asked unless it is one. Raises ``UsageError``
    for an hf:// URL without a revision, and whatever the hub's client raises."""
    found = _URL.fullmatch(url)
    if found is None:
        form = "hf://datasets/OWNER/NAME@REVISION/PATH"
        raise UsageError(f"{url!r} is not a place on the hub: write {form}")
    kind, repo, revision, path = found["kind"] or "", found["repo"], found["revision"], found["path"]
    if revision is None:
        raise UsageError(
            f"{url!r} names no revision: write hf://{kind}{repo}@REVISION/{path} with a commit sha or a tag, "
            "so that every run reads the same rows"
        )
    if not _COMMIT.fullmatch(revision):
        from huggingface_hub import HfApi

        def ask() -> str | None:
            info = HfApi().repo_info(repo, repo_type=_KINDS.get(kind), revision=unquote(revision))
            return info.sha

        revision = patiently(ask, url) or revision
    return f"hf://{kind}{repo}@{revision}/{path}"
