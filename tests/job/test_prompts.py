"""Fixed prompts that the model could never be asked are found before the run starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from photon.engine.engine import Engine
from photon.engine.null import NullEngine
from photon.job.prompts import check_prompts
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from photon.manifest.problems import ManifestError

LONG = " ".join(["word"] * 4000)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine.load("photon://tiny", device="cpu", max_batch=1)
    yield made
    made.close()


@pytest.fixture
def manifest(manifest_file: Callable[..., Path]) -> Callable[[str], Manifest]:
    Path("rows.parquet").touch()
    return lambda tasks: load_manifest(manifest_file(tasks=tasks), environment={})


def test_what_fits(engine: Engine, manifest: Callable[[str], Manifest]) -> None:
    tasks = (
        "[{name: a, type: query, question: Is it?}, {name: b, type: caption}, {name: c, type: detect, objects: [x]}]"
    )
    check_prompts(manifest(tasks), engine)


def test_what_never_fits(engine: Engine, manifest: Callable[[str], Manifest]) -> None:
    tasks = f"""
  - {{name: a, type: query, question: {LONG}}}
  - {{name: b, type: point, objects: [x, {LONG}]}}
  - {{name: c, type: query, question: "{{column}} {LONG}"}}
"""
    with pytest.raises(ManifestError) as caught:
        check_prompts(manifest(tasks), engine)
    first, second = caught.value.problems
    assert [(first.line, first.key), (second.line, second.key)] == [(5, "tasks.0.question"), (6, "tasks.1.objects.1")]
    assert first.message.startswith("PROMPT_TOO_LONG: the prompt has ")
    assert first.message.endswith("; shorten it")


def test_the_edge_is_where_a_row_would_fail(engine: Engine, manifest: Callable[[str], Manifest]) -> None:
    """The longest prompt that passes is the longest that leaves room for a token after the image."""

    def fits(words: int) -> bool:
        try:
            check_prompts(manifest(f"[{{name: a, type: query, question: {' '.join(['word'] * words)}}}]"), engine)
        except ManifestError:
            return False
        return True

    low, high = 1, 4000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    with pytest.raises(ManifestError) as caught:
        check_prompts(manifest(f"[{{name: a, type: query, question: {' '.join(['word'] * high)}}}]"), engine)
    ((made, known),) = re.findall(r"that makes (\d+) positions, and the model knows (\d+)", str(caught.value))
    assert 0 < int(made) - int(known) <= 5, "one word less fits"


def test_an_engine_without_a_model_takes_anything(manifest: Callable[[str], Manifest]) -> None:
    check_prompts(manifest(f"[{{name: a, type: query, question: {LONG}}}]"), NullEngine())
