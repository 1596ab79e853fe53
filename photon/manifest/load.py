"""Reads a manifest from its file, or tells everything that is wrong with it at once.

Looks at the file and at the local paths that it names; the columns of the input are compared in ``columns``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from photon.manifest.complaints import problems_of
from photon.manifest.document import Document
from photon.manifest.manifest import Manifest
from photon.manifest.overrides import apply_overrides, override_of, overrides_in
from photon.manifest.paths import missing_paths
from photon.manifest.problems import ManifestError, Problem
from photon.manifest.rules import broken_rules
from photon.manifest.variables import fill_variables


def load_manifest(path: str | Path, sets: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Manifest:
    """The manifest in the file ``path``. Raises ``ManifestError`` (a ``UsageError``) that lists every problem.

    ``sets`` are ``KEY=VALUE``; they win over the environment's PHOTON_BATCH__KEY, which wins over the file.
    ``environment`` is by default the process's.
    """
    environment = os.environ if environment is None else environment
    given = [override_of(argument) for argument in sets]
    document = Document.read(path)
    fill_variables(document, environment)
    apply_overrides(document, [*overrides_in(environment), *given])
    return parse_manifest(document)


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
    problems += [document.problem(path, message) for path, message in broken if path not in told]
    if problems or manifest is None:
        raise ManifestError(document.file, problems)
    return manifest.with_document(document)
