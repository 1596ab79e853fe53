"""The engine against the reference: every request of the goldens, alone and all together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import photon
from tests.models import checkpoints
from tests.reference import TINY, assert_same, requests


@pytest.fixture(scope="module")
def engine() -> Iterator[photon.Engine]:
    engine = photon.Engine.load("photon://tiny", decision="reference")
    yield engine
    engine.close()


@pytest.mark.parametrize("id", requests(), ids=str)
def test_alone(engine: photon.Engine, id: object) -> None:
    request, answer = requests()[id]
    (result,) = engine.run([request])
    assert result.id == id
    assert_same(result, answer)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(
    ("max_batch", "shared"),
    [(1, True), (16, True), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, True), (8, False)))],
)
def test_all_in_one_shuffled_batch(depth: int, max_batch: int, shared: bool) -> None:
    asked = requests(shared)
    engine = photon.Engine.load("photon://tiny", decision="reference", depth=depth, max_batch=max_batch)
    order = list(asked)
    random.Random(10 * depth + max_batch).shuffle(order)
    results = {result.id: result for result in engine.run(asked[id][0] for id in order)}
    engine.close()
    assert results.keys() == asked.keys()
    for id, result in results.items():
        assert_same(result, asked[id][1])


@pytest.mark.slow
def test_scores_do_not_depend_on_the_batch(engine: photon.Engine) -> None:
    asked = {id: request for id, (request, _) in requests().items() if id[1] in ("detect", "point")}
    together = {result.id: result for result in engine.run(asked.values())}
    for id, request in asked.items():
        (alone,) = engine.run([request])
        for name in ("objects", "points"):
            for a, b in zip(getattr(alone, name) or (), getattr(together[id], name) or (), strict=True):
                assert a.score_exist == pytest.approx(b.score_exist, abs=1e-4)
                assert a.score_loc == pytest.approx(b.score_loc, abs=1e-4)
                assert a.score == pytest.approx(a.score_exist * a.score_loc)
                assert 0 <= a.score <= 1


def answers(folder: Path) -> dict[object, object]:
    engine = photon.Engine.load(str(folder), decision="reference")
    found = {
        r.id: (r.text, r.reasoning, [(b.x_min, b.y_min, b.x_max, b.y_max) for b in r.objects or ()],
               [(p.x, p.y) for p in r.points or ()], list(r.token_ids))
        for r in engine.run(request for request, _ in requests().values())
    }  # fmt: skip
    engine.close()
    return found


def test_training_names_answer_as_hub_names(tmp_path: Path) -> None:
    renamed = checkpoints.in_training_names(checkpoints.tiny_tensors())
    assert answers(checkpoints.write(tmp_path, renamed)) == answers(TINY)


@pytest.mark.slow
def test_int4_answers_as_its_dequantised_self(tmp_path: Path) -> None:
    packed, plain = checkpoints.in_int4(checkpoints.tiny_tensors())
    ours = answers(checkpoints.write(tmp_path / "packed", packed))
    assert ours == answers(checkpoints.write(tmp_path / "plain", plain))
    assert ours != answers(TINY)
