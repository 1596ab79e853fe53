"""The input of a run, read again for its pictures: the manifest that names it, and what its errors mean then."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from photon.errors import InputError, RowError, UsageError
from photon.job.output import RunOutput
from photon.manifest.manifest import Manifest
from photon.manifest.problems import ManifestError


def manifest_of(output: RunOutput) -> Manifest:
    """The manifest that run.json holds. Raises ``UsageError`` for one of another version."""
    from pydantic import ValidationError

    try:
        return Manifest.model_validate_json(json.dumps(output.record["manifest"]))
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"]))
        raise UsageError(
            f"the manifest in {output.root / 'run.json'} cannot be read ({key}: {error.errors()[0]['msg']}); "
            "was it written by another version?"
        ) from None


def for_pictures(manifest: Manifest) -> Manifest:
    """``manifest`` with pictures and ids alone: other columns may be wide, or gone."""
    pictures = manifest.input.model_copy(update={"keep": ()})
    return manifest.model_copy(update={"input": pictures, "tasks": ()})


@contextmanager
def reading_again(root: Path, otherwise: str = "") -> Iterator[None]:
    """What goes wrong inside is an ``InputError`` that says that it is about reading again; ``otherwise``: what else
    can be done."""
    try:
        yield
    except (InputError, UsageError, RowError) as error:
        problems: Iterable[Any] = error.problems if isinstance(error, ManifestError) else ()
        told = "; ".join(problem.message for problem in problems) or str(error)
        raise InputError(
            f"the pictures of {root} cannot be read again ({told}); the input has to lie where it lay for the run, and "
            f"relative paths start from {os.getcwd()}: go to the folder that the run was started in{otherwise}"
        ) from error
