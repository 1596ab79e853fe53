"""Reads a manifest from its file, or tells everything that is wrong with it at once.

Looks at the file and at the local paths that it names; the columns of the input are compared in ``columns``.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from photon.manifest.complaints import problems_of
from photon.manifest.document import Document
from photon.manifest.manifest import Manifest
from photon.manifest.paths import missing_paths
from photon.manifest.problems import ManifestError, Problem
from photon.manifest.rules import broken_rules


def load_manifest(path: str | Path) -> Manifest:
    """The manifest in the file ``path``. Raises ``ManifestError`` (a ``UsageError``) that lists every problem."""
    return parse_manifest(Document.read(path))


def parse_manifest(document: Document) -> Manifest:
    """As ``load_manifest``, from a document already read."""
    data = document.data
    if data is None:
        raise ManifestError(document.file, [Problem((), "is empty; start from manifests/demo.yaml")])
    if not isinstance(data, dict):
        raise ManifestError(document.file, [Problem((), "is not a mapping; start with version: 1", 1)])
    problems = list(document.problems)
    manifest: Manifest | None = None
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, document)
    told = {problem.path for problem in problems}
    broken = [*broken_rules(data), *missing_paths(data)]
    problems += [Problem(path, message, document.line(path)) for path, message in broken if path not in told]
    if problems or manifest is None:
        raise ManifestError(document.file, problems)
    return manifest.with_document(document)
