"""Answers follow from the objects alone; here they are counted again, by other means than the code's own."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from training.questions import LENGTHS, NAMES, NUMBERS, Name, all_phrases, caption, plural, questions, with_article
from training.scene import COLOURS, DIGITS, SHAPES, Box, Object, Question, Scene

KINDS = "|".join((*SHAPES, "shape", "digit [0-9]", "digit", "thing"))
NAMED = re.compile(rf"\b(?:({'|'.join(COLOURS)}) )?({KINDS})(?:e?s)?\b|\banything ({'|'.join(COLOURS)})\b")


def made_up(seed: int, count: int) -> Scene:
    """``count`` things of few kinds and colours, without a picture."""
    rng = np.random.default_rng(seed)
    kinds = [(*SHAPES, *DIGITS)[i] for i in rng.integers(16, size=3)]
    colours = [COLOURS[i] for i in rng.integers(8, size=3)]
    things = [
        Object(kinds[rng.integers(3)], colours[rng.integers(3)], (x, y, x + 0.1, y + 0.1))
        for x, y in rng.random((count, 2)).tolist()
    ]
    return Scene(seed, np.zeros((4, 4, 3), np.uint8), tuple(sorted(things, key=lambda thing: thing.centre)))


def meant(words: str, scene: Scene) -> list[Object]:
    """What a name in ``words`` stands for, read with a pattern."""
    found = NAMED.search(words)
    assert found, words
    colour, kind = found[1] or found[3], found[2]
    things = [thing for thing in scene.objects if not colour or thing.colour == colour]
    if kind in (None, "thing"):
        return things
    if kind == "shape":
        return [thing for thing in things if not thing.kind.startswith("digit")]
    if kind == "digit":
        return [thing for thing in things if thing.kind.startswith("digit")]
    return [thing for thing in things if thing.kind == kind]


@pytest.fixture(scope="module")
def asked() -> list[tuple[Scene, Question]]:
    """Ten questions about each of 600 scenes of 0 to 9 things, and of a few crowds."""
    rng = np.random.default_rng(7)
    scenes = [made_up(seed, count) for seed, count in enumerate([*list(range(10)) * 60, *[15, 18, 20] * 10])]
    return [(scene, question) for scene in scenes for question in questions(scene, rng, 10)]


def of_group(asked: list[tuple[Scene, Question]], group: str) -> list[tuple[Scene, Question]]:
    found = [(scene, question) for scene, question in asked if question.group == group]
    assert len(found) > 50, group
    return found


def test_boxes_and_points_are_those_of_the_name_in_order(asked: list[tuple[Scene, Question]]) -> None:
    for scene, question in asked:
        if question.skill not in ("detect", "point"):
            continue
        things = meant(question.prompt, scene)
        boxes: tuple[Box, ...] = tuple(thing.box for thing in things)
        assert question.boxes == (boxes if question.skill == "detect" else ())
        assert question.points == (tuple(thing.centre for thing in things) if question.skill == "point" else ())
        assert (question.group == "absent") == (not things)
        kinds = {"shape": SHAPES, "digit": DIGITS, "absent": None, "any": None}[question.group]
        assert kinds is None or question.prompt.endswith(kinds)


def test_counts_are_right_and_from_none_to_twenty(asked: list[tuple[Scene, Question]]) -> None:
    answers = Counter()
    for scene, question in of_group(asked, "count"):
        assert question.text == str(len(meant(question.prompt, scene)))
        assert "crosss" not in question.prompt
        answers[int(question.text)] += 1
    assert {0, 1, 2, 3, 4, 5, 6} <= set(answers)
    assert answers[0] < 0.35 * sum(answers.values())
    assert max(answers) > 9


def test_colours_are_asked_only_where_they_are_sure(asked: list[tuple[Scene, Question]]) -> None:
    for scene, question in of_group(asked, "colour"):
        assert {thing.colour for thing in meant(question.prompt, scene)} == {question.text}


def test_yes_and_no_are_true_and_balanced(asked: list[tuple[Scene, Question]]) -> None:
    pairs = of_group(asked, "yes")
    for scene, question in pairs:
        assert question.text == ("yes" if meant(question.prompt, scene) else "no")
    there = [question.text for scene, question in pairs if scene.objects]
    assert there.count("yes") / len(there) == pytest.approx(0.5, abs=0.08)


def test_which_digit_is_asked_where_there_is_one(asked: list[tuple[Scene, Question]]) -> None:
    for scene, question in of_group(asked, "which"):
        assert [thing.kind for thing in scene.objects if thing.kind in DIGITS] == [f"digit {question.text}"]


def test_absent_names_are_mostly_near_misses(asked: list[tuple[Scene, Question]]) -> None:
    located = [pair for pair in asked if pair[1].skill in ("detect", "point") and pair[0].objects]
    absent = [(scene, question) for scene, question in located if question.group == "absent"]
    assert len(absent) / len(located) == pytest.approx(0.25, abs=0.03)
    near = [
        any(question.prompt.endswith(f" {thing.kind}") for thing in scene.objects if thing.kind in SHAPES)
        for scene, question in absent
        if any(thing.kind in SHAPES for thing in scene.objects)
    ]
    assert np.mean(near) > 0.4


def test_the_mix(asked: list[tuple[Scene, Question]]) -> None:
    shares = Counter(question.skill for _, question in asked)
    wanted = {"detect": 0.45, "point": 0.20, "query": 0.28, "caption": 0.07}
    for skill, share in wanted.items():
        assert shares[skill] / len(asked) == pytest.approx(share, abs=0.02), skill


def test_the_same_generator_gives_the_same_questions() -> None:
    scene = made_up(3, 5)
    first, second = (questions(scene, np.random.default_rng(1), 12) for _ in range(2))
    assert first == second
    assert len(first) == 12


def test_captions_by_hand() -> None:
    def thing(kind: str, colour: str, x: float, y: float) -> Object:
        return Object(kind, colour, (x, y, x, y))

    scene = Scene(
        0,
        np.zeros((4, 4, 3), np.uint8),
        (
            thing("circle", "red", 0.1, 0.1),
            thing("star", "orange", 0.4, 0.5),
            thing("circle", "red", 0.5, 0.9),
            thing("digit 7", "blue", 0.9, 0.5),
        ),
    )
    assert caption(scene, "short") == "two red circles, an orange star and a blue digit 7"
    assert caption(scene, "normal") == "The picture shows two red circles, an orange star and a blue digit 7."
    assert caption(scene, "long") == (
        "The picture shows a red circle at the top left, an orange star in the centre, a red circle at the bottom and "
        "a blue digit 7 on the right."
    )
    nothing = Scene(0, scene.pixels, ())
    assert caption(nothing, "short") == "nothing but a background"
    assert caption(nothing, "normal") == caption(nothing, "long") == "The picture shows nothing but a background."


def test_captions_account_for_every_thing() -> None:
    for seed in range(40):
        scene = made_up(seed, seed % 21)
        for length in LENGTHS:
            words = re.findall(r"[a-z]+", caption(scene, length).removeprefix("The picture shows "))
            number = {word: n for n, word in enumerate(NUMBERS)} | {"a": 1, "an": 1}
            told = sum(number.get(word, 0) for word in words) if scene.objects else 0
            assert told == len(scene.objects)


def test_words() -> None:
    assert plural("cross") == "crosses"
    assert with_article("orange ring") == "an orange ring"
    assert Name("cross", "red").many == "red crosses"
    assert Name("", "red").many == "red things"
    assert Name("", "red").one == "anything red"
    assert Name("digit 7").many == "digit 7s"
    assert len({name.text for name in NAMES}) == len(NAMES) == 74


def test_the_corpus_holds_every_word_that_is_asked_or_answered(asked: list[tuple[Scene, Question]]) -> None:
    phrases = set(all_phrases())
    words = {word for phrase in phrases for word in re.findall(r"\w+|[^\w\s]", phrase)}
    for _, question in asked:
        if question.prompt:
            assert question.prompt in phrases
        if question.skill == "query":
            assert question.text in phrases
        assert set(re.findall(r"\w+|[^\w\s]", question.text)) <= words
