"""Section 1: the engine on this card against the engine on the CPU in float32, against the reference's outputs, and the
Triton kernel against torch.

The tiny model is random, so its answers mean nothing; that they are equal token by token, and boxes bit by bit, means
that nothing of the loop, the graphs or the kernels changes them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.gpu import kernels
from benchmarks.gpu.engines import opened
from benchmarks.gpu.rows import Day, Figure, Row, skipped
from photon.core import Request, Result
from photon.engine.engine import Engine

_REFERENCE = Path(__file__).parents[2] / "tests" / "reference.py"
Answers = dict[Any, tuple[Any, ...]]


def section(day: Day) -> Iterator[Row]:
    reference = _reference()
    expected = _ask(day, reference, device="cpu", graphs=False, depth=1)
    yield day.attempt(
        "cpu float32, depth 1: the reference's outputs", partial(_against, _answered(day, reference), expected)
    )
    for device, graphs, depth in product(("cpu", "cuda"), (False, True), (1, 2)):
        if device == "cpu" and (graphs or depth == 1):
            continue
        what = f"{device} float32, depth {depth}, graphs {'on' if graphs else 'off'}: answers of cpu, depth 1"
        if device == "cuda" and not day.cuda:
            yield skipped(what)
            continue
        yield day.attempt(what, partial(_same, day, reference, expected, device=device, graphs=graphs, depth=depth))
    yield from kernels.rows(day)


def answer(result: Result) -> tuple[Any, ...]:
    """What may not depend on the device. Scores may, in their last bits."""
    boxes = [(b.x_min, b.y_min, b.x_max, b.y_max) for b in result.objects or ()]
    points = [(p.x, p.y) for p in result.points or ()]
    thoughts = result.reasoning.text if result.reasoning is not None else None
    return result.text, thoughts, boxes, points, tuple(result.token_ids), result.finish_reason, result.error


def differences(expected: Answers, found: Answers) -> list[str]:
    return [str(id) for id in expected if found.get(id) != expected[id]] + [str(id) for id in found.keys() - expected]


def _reference() -> ModuleType:
    """The reference's outputs and requests, by file: another package called tests may be installed."""
    spec = importlib.util.spec_from_file_location("gpu_day_reference", _REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answered(day: Day, reference: ModuleType) -> dict[Any, tuple[Request, Any]]:
    """What the reference was asked, with its answers; in a smoke run about its smallest picture alone."""
    asked: dict[Any, tuple[Request, Any]] = reference.requests()
    return {id: both for id, both in asked.items() if not day.smoke or reference.IMAGES[0] in id}


def _requests(day: Day, reference: ModuleType) -> list[Request]:
    """Those that the reference answered, and drawn texts with noise of their own."""
    asked = [request for request, _ in _answered(day, reference).values()]
    drawn = [
        Request(("drawn", seed), asked[0].image, "query", "what?", temperature=1.0, top_p=0.9, seed=seed, max_tokens=12)
        for seed in range(4)
    ]
    return [*asked, *drawn]


def _ask(day: Day, reference: ModuleType, *, device: str, graphs: bool, depth: int) -> Answers:
    options = {"dtype": "float32", "decision": "reference", "max_batch": 8}
    with opened(day, "photon://tiny", graphs=graphs, device=device, depth=depth, **options) as engine:
        found = {result.id: answer(result) for result in engine.run(_requests(day, reference))}
        if graphs:
            check_captured(engine)
    return found


def check_captured(engine: Engine) -> None:
    """That graphs were captured and replayed, and did not quietly give way to the eager code."""
    facts, told = engine.facts["graphs"], engine.statistics.as_dict()
    assert isinstance(facts, dict)
    if facts["missed"] or not told["graph_replays"]:
        raise AssertionError(f"{told['graph_replays']} replays of graphs; not captured: {facts['missed'] or 'nothing'}")


def _same(day: Day, reference: ModuleType, expected: Answers, **way: Any) -> dict[str, Figure]:
    found = _ask(day, reference, **way)
    wrong = differences(expected, found)
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(expected)} answers differ: {'; '.join(wrong[:5])}")
    return {"equal": Figure(len(found), "answers")}


def _against(reference: dict[Any, tuple[Request, Any]], found: Answers) -> dict[str, Figure]:
    """Boxes and points of the reference, exactly; the test suite compares everything else."""
    equal = 0
    for id, (_, answered) in reference.items():
        _, _, boxes, points, *_ = found[id]
        if "objects" in answered:
            wanted = [(o["x_min"], o["y_min"], o["x_max"], o["y_max"]) for o in answered["objects"]]
            if boxes != wanted:
                raise AssertionError(f"{id}: {boxes} where the reference has {wanted}")
            equal += 1
        elif "points" in answered:
            if points != [(p["x"], p["y"]) for p in answered["points"]]:
                raise AssertionError(f"{id}: {points} where the reference has {answered['points']}")
            equal += 1
    return {"equal": Figure(equal, "answers")}
