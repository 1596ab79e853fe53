"""Free text with coordinates and sizes in between, as an outline needs it: the same loop, no case of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from photon.core import FinishReason, Request
from photon.device.threads import ThreadDevice
from photon.device.virtual import VirtualDevice
from photon.engine import engine as engine_module
from photon.models.moondream import COORDINATE, SIZE
from photon.skills.grammar import Demand, MaskKind, Sample, Want
from photon.skills.skill import Prompt, Script, SkillContext
from tests.engine import micro

LENGTH = 24


@dataclass(slots=True)
class OutlineGrammar:
    """Text of a fixed length in which the model may say coordinates and sizes whenever it likes. Nothing is masked."""

    coordinate: int
    size: int
    tokens: list[int] = field(default_factory=list)
    places: dict[int, tuple[int, ...]] = field(default_factory=dict)
    mask: MaskKind = MaskKind.NONE
    max_samples: int = LENGTH

    def demand(self, nth: int) -> Demand:
        return Demand(Want.TOKEN | Want.COORDINATE | Want.SIZE)

    def advance(self, sample: Sample) -> FinishReason | None:
        token, first, second, *_ = sample
        if token == self.coordinate:
            self.places[len(self.tokens)] = (first,)
        elif token == self.size:
            self.places[len(self.tokens)] = (first, second)
        self.tokens.append(token)
        return "length" if len(self.tokens) == LENGTH else None


def script(request: Request, context: SkillContext) -> Script:
    grammar = OutlineGrammar(context.tokens.coord_id, context.tokens.size_id)
    prompt = Prompt([1, 17, 2, 30 + int(request.prompt), 3], {}, {})
    return Script(prompt, grammar, lambda: {"text": repr(grammar.places)})


@pytest.fixture
def outlines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model that likes to point, and a skill that lets it."""
    monkeypatch.setattr(engine_module, "script_for", script)
    bias = micro.loaded().model.text.lm_head.bias
    before = bias.clone()
    bias[[5, 6]] += 7.0
    yield
    bias.copy_(before)


def run(depth: int, max_batch: int, seed: int | None = None) -> dict[object, tuple[object, ...]]:
    device = ThreadDevice() if seed is None else VirtualDevice(seed=seed)
    engine = micro.engine(device, depth=depth, max_batch=max_batch)
    fed: set[int] = set()
    embed = engine._forward._model.embed

    def watched(ids: object, kinds: object = None, values: object = None) -> object:
        if kinds is not None:
            fed.update(kinds.tolist())  # type: ignore[attr-defined]
        return embed(ids, kinds, values)  # type: ignore[arg-type]

    engine._forward._model.__dict__["embed"] = watched
    try:
        asked = [Request(i, micro.image(i % 3), "query", str(i)) for i in range(8)]
        results = {r.id: (r.text, tuple(r.token_ids)) for r in engine.run(asked)}
    finally:
        del engine._forward._model.__dict__["embed"]
        engine.close()
    assert {COORDINATE, SIZE} <= fed, "what was said as a place is fed as a place"
    return results


@pytest.mark.slow
@pytest.mark.usefixtures("outlines")
def test_places_in_free_text_are_fed_back_and_do_not_depend_on_depth_or_batch() -> None:
    blocking = run(depth=1, max_batch=1)
    said = {token for _, tokens in blocking.values() for token in tokens}
    assert {5, 6} < said, "places, and words between them"
    for max_batch in (1, 3, 8):
        assert run(depth=2, max_batch=max_batch) == blocking
    assert run(depth=2, max_batch=3, seed=4) == blocking
