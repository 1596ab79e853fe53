from __future__ import annotations

import pytest

from photon.models.config import TokenConfig
from photon.skills.grammar import (
    Demand,
    Grammar,
    MaskKind,
    ObjectsGrammar,
    ReasoningGrammar,
    Sample,
    TextGrammar,
    Want,
)
from photon.skills.repetition import PlaceRepetition, TextRepetition, iou

IDS = TokenConfig()
COORD, SIZE, END, ANSWER = IDS.coord_id, IDS.size_id, IDS.eos_id, IDS.answer_id


def landed(
    token: int, first: int = 0, second: int = 0, p_end: float = 0.0, mass_first: float = 1.0, mass_second: float = 1.0
) -> Sample:
    return token, first, second, p_end, mass_first, mass_second


def feed(grammar: Grammar, *tokens: int) -> str | None:
    reason = None
    for token in tokens:
        assert reason is None, "fed after the end"
        reason = grammar.advance(landed(token))
    return reason


def text(**changes: object) -> TextGrammar:
    return TextGrammar(**{"end_id": END, "max_tokens": 4, "bans": (ANSWER,), **changes})  # type: ignore[arg-type]


def test_text_stops_at_the_end_token_and_at_the_cap() -> None:
    grammar = text()
    assert feed(grammar, 11, 12, END) == "stop"
    assert grammar.tokens == [11, 12]
    assert feed(text(), 11, 12, 13, 14) == "length"
    assert feed(text(), END) == "stop"


def test_text_bans_the_answer_token_from_the_second_on() -> None:
    grammar = text()
    assert grammar.mask is MaskKind.CONSTANT
    assert grammar.demand(1) == Demand(Want.TOKEN)
    assert grammar.demand(2) == grammar.demand(9) == Demand(Want.TOKEN, 0, ANSWER, ANSWER)
    assert text(bans=()).mask is MaskKind.NONE


def test_detect_cycles_through_decision_coordinate_and_size() -> None:
    grammar = ObjectsGrammar(IDS, sized=True, max_objects=2)
    assert grammar.max_samples == 6
    assert grammar.demand(1) == Demand(Want.BOUNDARY)
    assert grammar.advance(landed(COORD, first=10, p_end=0.25, mass_first=0.5)) is None
    assert grammar.demand(2) == Demand(Want.COORDINATE, COORD)
    assert grammar.advance(landed(COORD, first=20, mass_first=1.0)) is None
    assert grammar.demand(3) == Demand(Want.SIZE, SIZE)
    assert grammar.advance(landed(SIZE, first=30, second=40, mass_first=0.5, mass_second=1.0)) is None
    (found,) = grammar.found
    assert (found.x, found.y, found.size) == (10, 20, (30, 40))
    assert found.score_exist == 0.75
    assert found.score_loc == pytest.approx((0.5 * 1.0 * 0.5 * 1.0) ** 0.25)
    assert grammar.demand(4) == Demand(Want.BOUNDARY)
    assert feed(grammar, END) == "stop"
    assert grammar.tokens == [COORD, COORD, SIZE]


def test_point_takes_two_samples_an_object_and_stops_at_the_cap() -> None:
    grammar = ObjectsGrammar(IDS, sized=False, max_objects=2)
    assert grammar.max_samples == 4
    assert feed(grammar, COORD, COORD, COORD, COORD) == "max_objects"
    assert len(grammar.found) == 2
    assert all(found.size is None for found in grammar.found)


def test_nothing_found() -> None:
    grammar = ObjectsGrammar(IDS, sized=True, max_objects=2)
    assert feed(grammar, END) == "stop"
    assert grammar.found == []
    assert grammar.tokens == []


def test_reasoning_then_answer() -> None:
    grammar = ReasoningGrammar(IDS, text(), max_tokens=4)
    assert grammar.demand(1) == Demand(Want.TOKEN | Want.COORDINATE)
    grammar.advance(landed(COORD, first=512))
    assert grammar.demand(2) == Demand(Want.TOKEN | Want.COORDINATE, 0, END, SIZE)
    feed(grammar, 20, ANSWER)
    assert grammar.coordinates == {0: 512}
    assert grammar.demand(4) == Demand(Want.TOKEN)
    feed(grammar, 21)
    assert grammar.demand(5) == Demand(Want.TOKEN, 0, ANSWER, ANSWER)
    assert feed(grammar, END) == "stop"
    assert grammar.tokens == [COORD, 20, 21]


def test_reasoning_at_its_cap_is_made_to_answer() -> None:
    grammar = ReasoningGrammar(IDS, text(), max_tokens=2)
    assert feed(grammar, 20, 21) is None
    assert grammar.demand(3) == Demand(Want.NOTHING, ANSWER)
    feed(grammar, ANSWER)
    assert grammar.demand(4) == Demand(Want.TOKEN)
    assert feed(grammar, 1, 2, 4, 5) == "length"
    assert grammar.max_samples == 2 + 1 + 4


def first_alarm(tokens: list[int]) -> int | None:
    watch = TextRepetition()
    return next((i for i, token in enumerate(tokens) if watch.add(token)), None)


def test_circles_in_text() -> None:
    assert first_alarm([7, 8] * 50) == 23  # twelve times two
    assert first_alarm(list(range(10)) * 3) == 29
    assert first_alarm([7] * 23 + [8]) is None
    assert first_alarm(list(range(65)) * 4) is None  # longer than the longest period
    assert first_alarm(list(range(64)) * 3) == 191
    assert first_alarm([1, 2, 3, 9] + [5, 6, 7, 8, 9, 10, 11, 12] * 3) == 27
    assert first_alarm(list(range(2000))) is None
    twice = list(range(20)) * 2
    assert first_alarm([*twice, 99, *twice]) is None


def square(x: int, y: int, size: tuple[int, int]) -> tuple[float, float, float, float]:
    return (x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def detect_until_repetition(*places: tuple[int, int]) -> tuple[str | None, int]:
    grammar = ObjectsGrammar(IDS, True, 50, PlaceRepetition(square))
    for x, y in places:
        grammar.advance(landed(COORD, first=x))
        grammar.advance(landed(COORD, first=y))
        if (reason := grammar.advance(landed(SIZE, first=100, second=100))) is not None:
            return reason, len(grammar.found)
    return None, len(grammar.found)


def test_circles_among_boxes_drop_the_copies() -> None:
    assert detect_until_repetition((500, 500), (200, 200), (500, 500), (201, 200), (500, 501)) == ("repetition", 2)
    assert detect_until_repetition((500, 500), (500, 500), (500, 500)) == (None, 3)
    assert detect_until_repetition((500, 500), (500, 500), (500, 500), (200, 200), (500, 500)) == (None, 5)
    assert detect_until_repetition(*[(100 * i, 100) for i in range(10)]) == (None, 10)


def test_circles_among_points() -> None:
    grammar = ObjectsGrammar(IDS, False, 50, PlaceRepetition(square))
    bins = [(500, 500), (502, 498), (500, 499), (501, 500)]
    reasons = []
    for x, y in bins:
        grammar.advance(landed(COORD, first=x))
        reasons.append(grammar.advance(landed(COORD, first=y)))
    assert reasons == [None, None, None, "repetition"]
    assert len(grammar.found) == 1


def test_iou() -> None:
    assert iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert iou((0, 0, 2, 2), (1, 1, 3, 3)) == pytest.approx(1 / 7)
    assert iou((0, 0, 1, 1), (1, 0, 2, 1)) == 0.0
