"""``engine.graphs`` of a manifest: what it may say, and that the engine is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from photon.errors import UsageError
from photon.job import engine as job_engine
from photon.manifest.load import load_manifest
from photon.manifest.problems import ManifestError


@pytest.mark.parametrize(("said", "meant"), [("", "auto"), ("graphs: auto", "auto"), ("graphs: true", True),
                                             ("graphs: false", False)])  # fmt: skip
def test_the_engine_is_told(
    said: str, meant: object, manifest_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("rows.parquet").touch()
    manifest = load_manifest(manifest_file(engine=f"{{{said}}}"))
    given: dict[str, Any] = {}
    monkeypatch.setattr(job_engine, "load_engine", lambda path, **options: given.update(options))
    job_engine.open_engine(manifest)
    assert given["graphs"] == meant
    assert type(given["graphs"]) is type(meant)


def test_what_is_no_choice_is_told(manifest_file: Callable[..., Path]) -> None:
    Path("rows.parquet").touch()
    with pytest.raises(ManifestError, match=r"engine\.graphs: 'always' does not fit; write auto, true or false"):
        load_manifest(manifest_file(engine="{graphs: always}"))


def test_a_cpu_has_none(manifest_file: Callable[..., Path]) -> None:
    Path("rows.parquet").touch()
    manifest = load_manifest(manifest_file(engine="{graphs: true}", model="{path: photon://tiny, device: cpu}"))
    with pytest.raises(UsageError, match="graphs: cpu has none; leave it at auto"):
        job_engine.open_engine(manifest)
