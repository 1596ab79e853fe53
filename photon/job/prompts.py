"""Prompts that no row changes, tried on the model before a run starts: one that cannot be asked fails every row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from photon.core import Image, Request
from photon.engine.load import AnyEngine
from photon.errors import RowError
from photon.manifest.manifest import Manifest
from photon.manifest.problems import KeyPath
from photon.manifest.tasks import Task


@runtime_checkable
class _Checking(Protocol):
    """An engine that knows beforehand what it cannot answer; one without a model does not."""

    def check(self, request: Request) -> None: ...


def check_prompts(manifest: Manifest, engine: AnyEngine) -> None:
    """Raises ``ManifestError`` that lists every fixed prompt which ``engine`` could not answer about any image."""
    if isinstance(engine, _Checking):
        wrong = [found for number, task in enumerate(manifest.tasks) for found in _refused(number, task, engine)]
        if wrong:
            raise manifest.wrong(wrong)


def _refused(number: int, task: Task, engine: _Checking) -> Iterator[tuple[KeyPath, str]]:
    for place, template in enumerate(task.templates):
        if template is not None and template.columns:
            continue  # each row has one of its own, and fails by itself
        key: KeyPath = ("question",) if task.type == "query" else () if template is None else ("objects", place)
        prompt = None if template is None else template.fill({})
        try:
            engine.check(Request(0, Image(b""), task.type, prompt, **task.settings()))
        except RowError as error:
            remedy = "; shorten it" if error.code == "PROMPT_TOO_LONG" else ""
            yield ("tasks", number, *key), f"{error.code}: {error}{remedy}"
