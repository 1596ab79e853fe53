"""The figures on small outputs, worked out by hand, and agreement with pycocotools on random ones."""

from __future__ import annotations

import contextlib
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from photon.errors import UsageError
from photon.evaluate.evaluate import evaluate
from photon.evaluate.options import Judging, TruthOptions
from photon.evaluate.report import ObjectsReport, Report, TextReport
from tests.evaluate.outputs import (
    BOX,
    CAPTION,
    DETECT,
    POINT,
    QUERY,
    TRUTH,
    answer,
    failed,
    found,
    spot,
    true,
    write_output,
    write_truth,
)

KEPT = TruthOptions("truth")
A, B, C = (0.0, 0.0, 0.4, 0.4), (0.5, 0.5, 0.9, 0.9), (0.1, 0.1, 0.3, 0.3)
HAND = [
    {  # B is found 0.25 high instead of 0.4: IoU 0.625
        "truth": [true("cat", A), true("cat", B)],
        "things": [
            found("cat", A, 0.9),  # right
            found("cat", (0.5, 0.5, 0.9, 0.75), 0.6),  # right up to IoU 0.625
            found("cat", A, 0.8),  # wrong: A is taken
            found("dog", A, 0.5),  # wrong: no dog
        ],
    },
    {"truth": [true("cat", C)], "things": failed()},  # missed
    {"truth": [], "things": [found("cat", C, 0.7)]},  # wrong
]


def objects(report: Report, name: str = "things") -> ObjectsReport:
    (task,) = (task for task in report.tasks if task.name == name)
    assert isinstance(task, ObjectsReport)
    return task


def text(report: Report, name: str = "count") -> TextReport:
    (task,) = (task for task in report.tasks if task.name == name)
    assert isinstance(task, TextReport)
    return task


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    return write_output(tmp_path / "out", [DETECT], HAND, {"truth": pa.list_(BOX)})


def test_by_hand(by_hand: Path) -> None:
    report = evaluate(by_hand, KEPT)
    task = objects(report)
    assert (report.rows, report.failed, task.rows.judged, task.rows.failed) == (3, 1, 3, 1)

    # Cats: 3 true (A, B, C); found by score 0.9 right, 0.8 wrong, 0.7 wrong, 0.6 right. TP 2, FP 2, FN 1.
    cat = task.classes["cat"]
    assert (cat.asked, cat.true, cat.found, cat.right) == (3, 3, 4, 2)
    assert cat.precision == 2 / 4
    assert cat.recall == 2 / 3
    assert cat.f1 == 4 / 7
    # Counts: row 0 has 3 for 2, row 2 has 1 for 0; row 1 was not answered. Row 2 alone is empty, and answered wrongly.
    assert (cat.count_error, cat.empty_right) == (1.0, 0.0)
    # AP at 0.5, precision over recall: 1 up to recall 1/3, then at best 2/4 up to 2/3, then 0. Of the 101 recalls
    # 0.00 to 1.00, 34 lie up to 1/3 (0.00 to 0.33) and 33 up to 2/3: (34 x 1 + 33 x 0.5) / 101 = 0.5.
    assert cat.ap50 == pytest.approx(0.5)
    # At 0.50, 0.55, 0.60 the box with IoU 0.625 is right; from 0.65 on the first alone: 34 / 101 at seven thresholds.
    assert cat.ap == pytest.approx((3 * 0.5 + 7 * 34 / 101) / 10)

    # Dogs: none there, one found. Three empty rows: row 0 wrong, row 1 not answered, row 2 right.
    dog = task.classes["dog"]
    assert (dog.true, dog.found, dog.right, dog.precision, dog.recall, dog.f1) == (0, 1, 0, 0.0, None, 0.0)
    assert (dog.ap, dog.empty_right) == (None, 1 / 3)

    # Micro: TP 2, FP 3, FN 1. Macro: cats are the one class with truth.
    assert (task.micro.precision, task.micro.recall, task.micro.f1) == (2 / 5, 2 / 3, 4 / 8)
    assert task.macro["precision"] == cat.precision
    assert task.macro["ap"] == cat.ap


def test_a_threshold_leaves_answers_out_but_not_of_ap(by_hand: Path) -> None:
    whole, part = (objects(evaluate(by_hand, KEPT, Judging(min_score=t))).classes["cat"] for t in (0.0, 0.7))
    # From 0.7 on (stored as float32, just below 0.7): 0.9 right, 0.8 wrong, 0.7 wrong.
    assert (part.found, part.right) == (3, 1)
    assert (part.ap, part.ap50) == (whole.ap, whole.ap50)
    none = objects(evaluate(by_hand, KEPT, Judging(min_score=1.0))).micro
    assert (none.found, none.precision, none.recall, none.f1) == (0, None, 0.0, 0.0)
    assert none.empty_right == 3 / 4, "of row 2 for cat and three rows for dog; the failed one is not right"


def test_another_iou(by_hand: Path) -> None:
    assert objects(evaluate(by_hand, KEPT, Judging(iou=0.6))).micro.right == 2
    assert objects(evaluate(by_hand, KEPT, Judging(iou=0.65))).micro.right == 1


def test_the_curve_by_hand(by_hand: Path) -> None:
    ranking = objects(evaluate(by_hand, KEPT)).ranking
    # 0.9 right, 0.8, 0.7 wrong, 0.6 right, 0.5 (dog) wrong; three true.
    assert [round(at.score, 4) for at in ranking.curve] == [0.9, 0.8, 0.7, 0.6, 0.5]
    assert [at.precision for at in ranking.curve] == pytest.approx([1, 1 / 2, 1 / 3, 2 / 4, 2 / 5])
    assert [at.recall for at in ranking.curve] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3])
    assert [at.f1 for at in ranking.curve] == pytest.approx([2 / 4, 2 / 5, 2 / 6, 4 / 7, 4 / 8])
    assert ranking.best is not None
    assert round(ranking.best.score, 4) == 0.6
    # Of 2 x 3 pairs of right and wrong, 0.9 stands above all three, 0.6 above the dog.
    assert ranking.order == pytest.approx(4 / 6)
    assert [(bin.found, bin.precision) for bin in ranking.bins if bin.found] == [
        (1, 0.0), (1, 1.0), (1, 0.0), (1, 0.0), (1, 1.0)
    ]  # fmt: skip


def test_precision_rises_with_the_threshold(tmp_path: Path) -> None:
    """Answers that are right as often as their score says."""
    dice = random.Random(1)
    rows = []
    for _ in range(400):
        score = dice.random()
        rows.append({"truth": [true("cat", A)], "things": [found("cat", A if dice.random() < score else B, score)]})
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)}, chunk=400)
    ranking = objects(evaluate(out, KEPT)).ranking
    at = {threshold.score: threshold.precision for threshold in ranking.curve}
    tops = [at[min(at, key=lambda s: abs(s - wanted))] for wanted in (0.1, 0.4, 0.7, 0.9)]
    assert tops == sorted(tops)
    assert all(abs((bin.precision or 0) - (bin.mean_score or 0)) < 0.2 for bin in ranking.bins)
    assert len(ranking.curve) <= 101
    assert ranking.order is not None
    assert 0.7 < ranking.order < 0.9


@pytest.mark.parametrize("seed", range(3))
def test_agreement_with_pycocotools(tmp_path: Path, seed: int) -> None:
    rows = _random_rows(random.Random(seed))
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)}, chunk=40)
    for threshold, place in ((0.5, 0), (0.75, 5)):
        task = objects(evaluate(out, KEPT, Judging(iou=threshold)))
        judged = _coco(rows)
        assert task.macro["ap"] == pytest.approx(judged.stats[0], abs=1e-9)
        assert task.macro["ap50"] == pytest.approx(judged.stats[1], abs=1e-9)
        for number, label in enumerate(("cat", "dog")):
            figures = task.classes[label]
            assert figures.recall == pytest.approx(judged.eval["recall"][place, number, 0, -1])
            # The first images x classes entries are those of the area range "all".
            cells = judged.evalImgs[number * 4 * len(rows) : number * 4 * len(rows) + len(rows)]
            assert figures.right == sum(int((cell["dtMatches"][place] > 0).sum()) for cell in cells if cell)
            assert figures.found == sum(len(cell["dtIds"]) for cell in cells if cell)


def _random_rows(dice: random.Random) -> list[dict[str, Any]]:
    """Crowded boxes on a coarse grid, few different scores: many ties of both."""

    def corners() -> tuple[float, float, float, float]:
        x, y = dice.randrange(8) / 16, dice.randrange(8) / 16
        return (x, y, x + dice.randrange(1, 9) / 16, y + dice.randrange(1, 9) / 16)

    rows = []
    for _ in range(40):
        truth = [true(dice.choice(("cat", "dog")), corners()) for _ in range(dice.randrange(6))]
        answers = [found(dice.choice(("cat", "dog")), corners(), dice.randrange(1, 9) / 8) for _ in range(6)]
        near = [found(box["label"], (box["x_min"], box["y_min"], box["x_max"] - 1 / 64, box["y_max"]), 0.5)
                for box in truth if dice.random() < 0.6]  # fmt: skip
        rows.append({"truth": truth, "things": answers + near})
    return rows


def _coco(rows: list[dict[str, Any]]) -> Any:
    """The same rows judged by pycocotools alone, in its own form and with its own settings."""
    kinds = {"cat": 1, "dog": 2}

    def cell(number: int, box: dict[str, Any]) -> dict[str, Any]:
        x, y = box["x_min"], box["y_min"]
        bbox = [x, y, box["x_max"] - x, box["y_max"] - y]
        return {"image_id": number, "category_id": kinds[box["label"]], "bbox": bbox, "area": bbox[2] * bbox[3]}

    truth = [cell(n, box) for n, row in enumerate(rows) for box in row["truth"]]
    answers = [{**cell(n, box), "score": box["score"]} for n, row in enumerate(rows) for box in row["things"]]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "images": [{"id": n} for n in range(len(rows))],
            "categories": [{"id": n} for n in kinds.values()],
            "annotations": [{**box, "id": n, "iscrowd": 0} for n, box in enumerate(truth, 1)],
        }
        coco.createIndex()
        judged = COCOeval(coco, coco.loadRes(answers), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return judged


def test_points_texts_and_rows_without_truth(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {  # two hits; the third point has no box of its own
            "truth": {"spots": [true("cat", A), true("cat", B)], "count": " 2 "},
            "spots": [spot("cat", 0.1, 0.1, 0.9), spot("cat", 0.6, 0.6, 0.5), spot("cat", 0.2, 0.2, 0.3)],
            "count": "2",
        },
        {"truth": {"spots": [true("cat", A)], "count": "Two"}, "spots": [], "count": "two "},
        {"truth": {"spots": [], "count": "7"}, "spots": [], "count": "4.5"},
        {"truth": {"spots": [true("cat", A)], "count": "3"}, "spots": failed(), "count": failed()},
        {"truth": {"spots": None, "count": "1"}, "count": "one"},
        {"truth": None, "spots": [spot("cat", 0, 0, 1)], "count": "9"},
    ]
    kept = {"truth": TRUTH}
    report = evaluate(write_output(tmp_path / "out", [DETECT, POINT, QUERY, CAPTION], rows, kept), KEPT)
    assert [task.name for task in report.tasks] == ["spots", "count"]
    assert report.notes == ("no truth for things, cap",)
    assert (report.rows, report.failed) == (6, 1)

    spots = objects(report, "spots")
    assert (spots.rows.judged, spots.rows.failed, spots.rows.untold) == (4, 1, 2)
    cat = spots.classes["cat"]
    assert (cat.true, cat.found, cat.right) == (4, 3, 2), "the failed row's cat is missed"
    assert (cat.precision, cat.recall, cat.ap) == (2 / 3, 2 / 4, None)
    assert cat.count_error == (1 + 1 + 0) / 3
    assert cat.empty_right == 1.0

    count = text(report)
    assert (count.rows.judged, count.rows.failed, count.rows.untold) == (5, 1, 1)
    assert (count.right, count.exact_match) == (2, 2 / 5)
    assert (count.numbers, count.count_error, count.wordy) == (2, (0 + 2.5) / 2, 1)


def test_captions_are_compared_whole_and_it_says_so(tmp_path: Path) -> None:
    rows = [{"truth": "A cat.", "cap": " a CAT."}, {"truth": "A cat.", "cap": "A cat"}]
    report = text(evaluate(write_output(tmp_path / "out", [CAPTION], rows, {"truth": pa.string()}), KEPT), "cap")
    assert (report.right, report.count_error) == (1, None)
    assert "exact match alone" in report.notes[0]


def test_names_that_are_filled_from_a_column(tmp_path: Path) -> None:
    """A row is judged for what it was asked; truth about anything else is left out and told."""
    task = {**DETECT, "objects": ["{subject}", "a {{b}}"]}
    rows = [
        {"subject": "cat", "truth": [true("cat", A), true("dog", B)], "things": [found("cat", A, 0.9)]},
        {"subject": "dog", "truth": [true("a {b}", A), true("Cat", B)], "things": []},
        {"subject": None, "truth": [true("cat", A), true("a {b}", B)], "things": failed("PROMPT_NULL")},
    ]
    out = write_output(tmp_path / "out", [task], rows, {"subject": pa.string(), "truth": pa.list_(BOX)})
    report = objects(evaluate(out, KEPT))
    assert {label: (made.asked, made.true, made.right) for label, made in report.classes.items()} == {
        "a {b}": (3, 2, 0), "cat": (1, 1, 1), "dog": (1, 0, 0)
    }  # fmt: skip
    assert report.notes[0].startswith("3 true boxes left out, since nobody asked for them: ")


def test_the_input_as_truth_fills_names_that_the_run_did_not_keep(tmp_path: Path) -> None:
    task = {**DETECT, "objects": ["{subject}"]}
    rows = [{"things": [found("cat", A, 0.9)]}, {"things": []}, {"things": []}]
    given = write_truth(
        tmp_path / "in.parquet",
        subject=["cat", "dog", "cat"],
        truth=pa.array([[true("cat", A)], [true("dog", B)], None], pa.list_(BOX)),
    )
    source = {"parquet": [str(given)]}
    out = write_output(tmp_path / "out", [task], rows, input=source)
    with pytest.raises(UsageError, match=r"no row of .* was read from it"):
        evaluate(out, TruthOptions("truth", file=str(given)))
    # Two rows to a group: positions (0, 0), (0, 1), (1, 0).
    places = [{"file": str(given), "row_group": n // 2, "row": n % 2} for n in range(3)]
    rows = [{**row, "source": place} for row, place in zip(rows, places, strict=True)]
    out = write_output(tmp_path / "placed", [task], rows, input=source)
    report = objects(evaluate(out, TruthOptions("truth", file=str(given))))
    assert (report.rows.judged, report.rows.untold) == (2, 1)
    assert {label: (made.true, made.right) for label, made in report.classes.items()} == {"cat": (1, 1), "dog": (1, 0)}


def test_truth_in_a_file_by_key(tmp_path: Path) -> None:
    """Row ids are text, whatever the id column holds; rows that the file lacks have no truth."""
    rows = [{"row_id": str(n), "cam": n, "things": [found("cat", A, 0.9)]} for n in range(4)]
    out = write_output(tmp_path / "out", [DETECT], rows, {"cam": pa.int64()}, input={"id": "number"}, ipc="stream")
    boxes = pa.array([[true("cat", A)], [true("cat", B)], []], pa.list_(BOX))
    file = write_truth(tmp_path / "t.parquet", number=[2, 0, 8], row_id=["2", "0", "8"], cam=[2, 0, 8], truth=boxes)
    for on in ("number", "row_id", "cam", None):
        report = objects(evaluate(out, TruthOptions("truth", file=str(tmp_path / "t*.parquet"), on=on)))
        assert (report.rows.judged, report.rows.untold) == (2, 2)
        assert (report.micro.true, report.micro.right) == (2, 1)
    assert file.exists()


def test_notes(tmp_path: Path) -> None:
    flat = true("cat", (0.1, 0.1, 0.1, 0.5))
    cut = {**answer("objects", []), "truncated": True}
    rows = [{"truth": [flat, true("cat", A), true("dgo", A)], "things": cut}]
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)}, state="interrupted")
    report = evaluate(out, KEPT)
    assert report.notes == ("the run is interrupted: only the rows on disk are judged",)
    assert objects(report).notes == (
        "1 answers were cut short at max_objects: some truth was out of reach",
        "1 true boxes left out, since nobody asked for them: dgo x1; did you mean dog?",
        "1 true boxes without area left out",
    )
    assert objects(report).micro.true == 1


def test_boxes_without_area_leave_a_row_neither_empty_nor_counted(tmp_path: Path) -> None:
    flat = true("cat", (0.1, 0.1, 0.1, 0.5))
    rows = [
        {"truth": [flat], "things": [found("cat", A, 0.9)]},
        {"truth": [flat], "things": []},
        {"truth": [flat, true("cat", A)], "things": [found("cat", A, 0.9)]},
    ]
    report = objects(evaluate(write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)}), KEPT))
    cat, dog = report.classes["cat"], report.classes["dog"]
    assert (cat.asked, cat.true, cat.found, cat.right) == (3, 1, 2, 1)
    assert (cat.empty, cat.counted, cat.off) == (0, 1, 0)
    assert (dog.empty, dog.empty_rows_right, dog.counted) == (3, 3, 3), "the other class is as ever"


def test_a_run_on_pictures_of_other_things_alone(tmp_path: Path) -> None:
    """Nothing that was asked for is there: figures all the same, and a note; the other task is judged as ever."""
    dogs = {**DETECT, "objects": ["dog"]}
    rows = [{"truth": {"things": [true("cat", A)], "count": "1"}, "things": [found("dog", A, 0.9)], "count": "1"},
            {"truth": {"things": [true("bird", A)], "count": "1"}, "things": [], "count": "1"}]  # fmt: skip
    report = evaluate(write_output(tmp_path / "out", [dogs, QUERY], rows, {"truth": TRUTH}), KEPT)
    things = objects(report)
    assert (things.micro.true, things.micro.found, things.micro.empty_right) == (0, 1, 0.5)
    assert things.notes[:2] == (
        "2 true boxes left out, since nobody asked for them: cat x1, bird x1",
        "no true box has a label that was asked for (dog), so every answer is a wrong one",
    )
    assert text(report).exact_match == 1


def test_labels_that_another_row_was_asked_for(tmp_path: Path) -> None:
    """No slip of the pen: each is asked for, in the other row."""
    task = {**DETECT, "objects": ["{subject}"]}
    rows = [{"subject": "cat", "truth": [true("dog", A)]}, {"subject": "dog", "truth": [true("cat", A)]}]
    out = write_output(tmp_path / "out", [task], rows, {"subject": pa.string(), "truth": pa.list_(BOX)})
    assert objects(evaluate(out, KEPT)).notes[0] == (
        "2 true boxes left out, since nobody asked for them: dog x1, cat x1"
    )


def test_a_struct_of_nulls_is_no_truth(tmp_path: Path) -> None:
    kind = pa.struct([("bbox", pa.list_(pa.list_(pa.float64()))), ("category", pa.list_(pa.string()))])
    rows = [
        {"truth": {"bbox": None, "category": None}, "things": [found("cat", A, 0.9)]},
        {"truth": {"bbox": [list(A)], "category": ["cat"]}, "things": []},
    ]
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": kind})
    report = objects(evaluate(out, TruthOptions("truth", layout="xyxy")))
    assert (report.rows.judged, report.rows.untold) == (1, 1)
    assert (report.micro.true, report.micro.found) == (1, 0)


def test_more_answers_than_coco_looks_at(tmp_path: Path) -> None:
    """The 120th answer is the right one: with COCO's 100 it would not count."""
    answers = [*(found("cat", B, 0.9) for _ in range(119)), found("cat", A, 0.1)]
    rows = [{"truth": [true("cat", A)], "things": answers}]
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)})
    assert objects(evaluate(out, KEPT)).macro["ap50"] == pytest.approx(1 / 120)


def test_pixels_and_layouts(tmp_path: Path) -> None:
    """Pictures are 200 x 100: A is (0, 0, 80, 40) in pixels. A failed row has no size, and its boxes still count."""
    rows = [{"things": [found("cat", A, 0.9)]}, {"things": failed(), "image": None}]
    shapes: dict[str, tuple[Any, dict[str, Any]]] = {
        "corners in pixels": ([true("cat", (0, 0, 80, 40))], {"pixels": True}),
        "objects": ({"bbox": [[0.0, 0.0, 0.4, 0.4]], "category": ["cat"]}, {"layout": "xyxy"}),
        "coco": ([{"bbox": [0.0, 0.0, 80.0, 40.0], "category": "cat"}], {"layout": "xywh", "pixels": True}),
        "numbers": ({"bbox": [[0.0, 0.0, 80.0, 40.0]], "category": [1]}, {"layout": "xywh", "pixels": True}),
        "struct of lists": ({name: [cell] for name, cell in true("cat", A).items()}, {}),
    }
    names = {"truth": {"category": {"feature": {"names": ["dog", "cat"], "_type": "ClassLabel"}, "_type": "List"}}}
    for shape, (cell, options) in shapes.items():
        kind = pa.array([cell]).type
        out = write_output(
            tmp_path / shape, [DETECT], [{**row, "truth": cell} for row in rows], {"truth": kind}, features=names
        )
        micro = objects(evaluate(out, TruthOptions("truth", **options))).micro
        assert (micro.true, micro.found, micro.right, micro.recall) == (2, 1, 1, 0.5), shape


def test_classes_as_answers(tmp_path: Path) -> None:
    names = {"truth": {"names": ["red", "blue"], "_type": "ClassLabel"}}
    rows = [{"truth": 1, "count": "Blue"}, {"truth": 0, "count": "blue"}]
    named = write_output(tmp_path / "named", [QUERY], rows, {"truth": pa.int64()}, features=names)
    assert text(evaluate(named, KEPT)).right == 1
    rows = [{"truth": 1, "count": "1"}, {"truth": 0, "count": "2"}]
    numbers = text(evaluate(write_output(tmp_path / "numbers", [QUERY], rows, {"truth": pa.int64()}), KEPT))
    assert (numbers.right, numbers.count_error) == (1, 1.0)


def test_a_map_by_task(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    rows = [{"truth": [("count", "2")], "count": "2"}, {"truth": [("cap", "x")], "count": "2"}]
    report = text(evaluate(write_output(tmp_path / "out", [QUERY], rows, {"truth": kind}), KEPT))
    assert (report.right, report.rows.judged, report.rows.untold) == (1, 1, 1)


def test_scores_are_float32_all_along(tmp_path: Path) -> None:
    rows = [{"truth": [true("cat", A)], "things": [found("cat", A, s)]} for s in (0.1, 0.3, 0.7, 0.9)]
    out = write_output(tmp_path / "out", [DETECT], rows, {"truth": pa.list_(BOX)})
    assert float(np.float32(0.3)) != 0.3
    for at, left in ((0.1, 4), (0.3, 3), (0.7, 2), (0.9, 1)):
        assert objects(evaluate(out, KEPT, Judging(min_score=at))).micro.found == left
