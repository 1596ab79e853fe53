"""Truth that is missing or misshapen: what is said of each, with its place and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from photon.errors import InputError, UsageError
from photon.evaluate.evaluate import evaluate
from photon.evaluate.options import Judging, TruthOptions, layout_of
from photon.job.folder import result_file
from tests.evaluate.outputs import BOX, DETECT, POINT, QUERY, TRUTH, true, write_output, write_truth

A = (0.0, 0.0, 0.4, 0.4)
BOXES = pa.list_(BOX)
NUMBERS = pa.list_(pa.list_(pa.float64()))
BBOX = {"bbox": [[0.0, 0.0, 0.4, 0.4]], "category": ["cat"]}


def refusal(out: Path, column: str = "truth", **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        evaluate(out, TruthOptions(column, **options))
    return str(caught.value)


@pytest.mark.parametrize(
    ("cell", "kind", "options", "message"),
    [
        ("cat", None, {}, "holds 'cat' in place of boxes; write a list of {label, x_min, y_min, x_max, y_max}, or"),
        (["cat"], None, {}, "holds 'cat' in place of a box; write a list of"),
        ([{"x_min": 0.1}], None, {}, "holds a box without label or category, with x_min; write a list of"),
        ([{"label": "cat", "x_min": 0.1}], None, {}, "holds a box without y_min, x_max, y_max; write a list of"),
        ([true("cat", (0.5, 0, 0.4, 1))], BOXES, {}, "holds a box of 'cat' that ends before it begins, [0.5, 0.0, 0.4"),
        ([true("cat", (0, 0, 80, 40))], BOXES, {}, "reaches out of the picture, [0.0, 0.0, 80.0, 40.0] of its sides; "
         "say --pixels if these are pixels, else clip it to [0, 1]"),
        ([true("cat", (0, 0, 300, 40))], BOXES, {"pixels": True}, "reaches out of the picture, [0.0, 0.0, 1.5, 0.4] of "
         "its sides; truth has to be in the frame that the row's image records"),
        ([true("cat", (0, 0, float("nan"), 1))], BOXES, {}, "holds a box of 'cat' with [0.0, 0.0, nan, 1.0]; write"),
        ([{**true("cat", A), "x_max": None}], BOXES, {}, "holds a box of 'cat' with [0.0, 0.0, None, 0.4]; write four"),
        ([{**true("cat", A), "label": None}], BOXES, {}, "holds None as label; write the name of a class"),
        ([{**true("cat", A), "label": ""}], BOXES, {}, "holds '' as label; write the name of a class"),
        (BBOX, None, {}, "holds boxes as four numbers; say what they are with --boxes xywh (x, y, width"),
        ({**BBOX, "bbox": [[0.5, 0.5, 0.2, 0.2]]}, None, {"layout": "xyxy"}, "that ends before it begins, "
         "[0.5, 0.5, 0.2, 0.2]; is it x, y, width, height (--boxes xywh)?"),
        ({**BBOX, "bbox": [[0.5, 0.5]]}, None, {"layout": "xyxy"}, "holds the bbox [0.5, 0.5]; write four numbers"),
        ({**BBOX, "bbox": [[0.1, 0.1, 0.2, None]]}, None, {"layout": "xywh"}, "with [0.1, 0.1, 0.2, None]; write four"),
        ({**BBOX, "category": []}, pa.struct([("bbox", NUMBERS), ("category", pa.list_(pa.string()))]), {},
         "holds lists that differ in length, 1 of bbox, 0 of category; write one of each for every box"),
        ({**BBOX, "category": None}, pa.struct([("bbox", NUMBERS), ("category", pa.list_(pa.string()))]), {},
         "holds None as category where a list goes; write a list of"),
        ({**BBOX, "category": [3]}, None, {"layout": "xyxy"}, "holds the number 3 as category, and the column has no "
         "ClassLabel; write class names"),
        ([true("Cat", A)], BOXES, {}, ": the labels of the truth (Cat) are none of those that were asked for (cat, "
         "dog); write them alike: Cat as cat"),
        ([true("bird", A), true("dogs", A), true(" CAT ", A)], BOXES, {}, ": the labels of the truth (bird, dogs,  CAT "
         ") are none of those that were asked for (cat, dog); write them alike: dogs as dog,  CAT  as cat"),
    ],
)  # fmt: skip
def test_wrong_boxes(tmp_path: Path, cell: Any, kind: Any, options: dict[str, Any], message: str) -> None:
    for task in (DETECT, {**DETECT, "type": "point"}):
        kept = {"truth": kind or pa.array([cell]).type}
        out = write_output(tmp_path / task["type"], [task], [{"truth": None}, {"truth": cell}], kept)
        told = refusal(out, **options)
        assert message in told
        place = f"{out}: column truth, task" if "write them alike" in told else f"{out}: column truth, row row1, task"
        assert told.startswith(f"{place} things: ")


@pytest.mark.parametrize(
    ("cell", "names", "message"),
    [
        (True, None, "holds True in place of an answer; write yes or no as the answer should read"),
        (0.5, None, "holds 0.5 in place of an answer; write a text or an integer"),
        (["a"], None, "holds ['a'] in place of an answer; write a text or an integer"),
        (2, ["red", "blue"], "holds the number 2 as the answer, and its ClassLabel has 2 names, from 0 on"),
        (-1, ["red", "blue"], "holds the number -1 as the answer, and its ClassLabel has 2 names, from 0 on"),
    ],
)
def test_wrong_answers(tmp_path: Path, cell: Any, names: list[str] | None, message: str) -> None:
    features = {"truth": {"names": names, "_type": "ClassLabel"}} if names else None
    kept = {"truth": pa.array([cell]).type}
    out = write_output(tmp_path / "out", [QUERY], [{"truth": cell}], kept, features=features)
    assert refusal(out) == f"{out}: column truth, row row0, task count: {message}"


def test_a_column_that_fits_no_task(tmp_path: Path) -> None:
    rows = [{"truth": {"things": []}, "boxes": []}]
    out = write_output(tmp_path / "out", [DETECT, POINT, QUERY], rows, {"truth": TRUTH, "boxes": BOXES})
    assert refusal(out, "trut") == (
        f"{out} holds no column trut; list it in the manifest's input.keep before the run, "
        "or say where it is with --truth-file (did you mean truth?)"
    )
    assert refusal(out, "boxes") == (
        f"{out}: column boxes holds {str(BOXES)[:57]}..., the truth of one task, and the run has things, spots, count; "
        "say which with --task, or make the column a struct with one field for each task"
    )
    assert refusal(out, "truth", task="thing") == "the run has no task thing; did you mean things?"
    assert refusal(out, "source") == (
        f"{out}: column source has a field for none of the tasks asked for (things, spots, count); "
        "name its fields, file, row_group, row, like the tasks"
    )
    assert evaluate(out, TruthOptions("boxes", task="things")).tasks[0].name == "things"


def test_truth_that_is_not_there(tmp_path: Path) -> None:
    out = write_output(tmp_path / "out", [DETECT], [{"truth": None}], {"truth": BOXES})
    assert refusal(out) == f"{out}: column truth is null in every row, so there is nothing to judge; fill it in"
    file = write_truth(tmp_path / "t.parquet", row_id=["other"], truth=pa.array([[]], BOXES))
    assert refusal(out, file=str(file)) == (
        f"{file}: column truth has a value for none of the output's rows, so there is nothing to judge; "
        "compare the ids of both"
    )


def test_wrong_files_of_truth(tmp_path: Path) -> None:
    out = write_output(tmp_path / "out", [DETECT], [{}], input={"id": "name"})
    boxes = pa.array([[], []], BOXES)
    file = write_truth(tmp_path / "t.parquet", name=["a", "a"], cam=["a", "b"], truth=boxes)
    assert refusal(out, "truht", file=str(file), on="name") == f"{file} has no column truht; did you mean truth?"
    assert refusal(out, file=str(file)) == (
        f"{file} has no column row_id, and no row of {out} was read from it; "
        "say with --on which of its columns holds the rows' ids"
    )
    assert refusal(out, file=str(file), on="nam") == f"{file} has no column nam; did you mean name?"
    assert refusal(out, file=str(file), on="cam") == (
        f"{out} holds no column cam, and its row ids do not come from one; "
        "give --on a column that input.id or input.keep of the manifest named"
    )
    assert refusal(out, file=str(file), on="name") == f"{file}: column name holds 'a' twice; keep one row of it"
    assert "there is no file" in refusal(out, file=str(tmp_path / "none.parquet"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing more")
    with pytest.raises(InputError, match=r"cannot read .*broken\.parquet"):
        evaluate(out, TruthOptions("truth", file=str(tmp_path / "broken.parquet")))
    with pytest.raises(UsageError, match="--on goes with --truth-file"):
        TruthOptions("truth", on="name")


def test_names_that_cannot_be_filled_in(tmp_path: Path) -> None:
    out = write_output(tmp_path / "out", [{**DETECT, "objects": ["{subject}"]}], [{"truth": []}], {"truth": BOXES})
    assert refusal(out) == (
        f"task things asks for {{subject}}, and neither {out} nor the truth holds a column subject, so what was asked "
        "of a row cannot be told; list it in the manifest's input.keep, or give files that have it with --truth-file, "
        "such as the input itself"
    )


def test_folders_that_are_no_output(tmp_path: Path) -> None:
    assert "there is no folder" in refusal(tmp_path / "none")
    assert "holds no run.json" in refusal(tmp_path)
    for content, message in (
        ("[]", "was not written by a run"),
        ("{}", "names no tasks"),
        ('{"manifest": {"tasks": [{"type": "detect"}]}}', "cannot be read"),
        ('{"manifest": {"tasks": [{"type": "detect", "name": "a", "objects": ["{"]}]}}', "cannot be read"),
        ('{"manifest": {"tasks": [{"type": "caption", "name": "a"}]}}', "no part files; let the run write some rows"),
        (
            '{"state": "finished", "manifest": {"tasks": [{"type": "caption", "name": "a"}]}}',
            "no part files; its run has ended, and its input had no rows",
        ),
    ):
        (tmp_path / "run.json").write_text(content, encoding="utf-8")
        assert message in refusal(tmp_path)
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "run.json"))):
        evaluate(tmp_path, TruthOptions("truth"))
    out = write_output(tmp_path / "out", [DETECT], [{"truth": []}], {"truth": BOXES})
    (out / "data" / "part-000000.arrow").write_bytes(b"ARROW1 nothing more")
    with pytest.raises(InputError, match=r"part-000000\.arrow"):
        evaluate(out, TruthOptions("truth"))
    segments = write_output(tmp_path / "new", [DETECT], [{"truth": []}], {"truth": BOXES})
    record = (segments / "run.json").read_text(encoding="utf-8").replace('"detect"', '"segment"')
    (segments / "run.json").write_text(record, encoding="utf-8")
    assert "of a type that eval knows" in refusal(segments)


def test_wrong_settings(tmp_path: Path) -> None:
    for settings in ({"iou": 0.0}, {"iou": 1.1}, {"min_score": -0.1}, {"min_score": float("nan")}):
        with pytest.raises(UsageError):
            Judging(**settings)
    with pytest.raises(UsageError, match="--boxes is xyxy"):
        layout_of("yxyx")
    with pytest.raises(UsageError, match="holds results and nothing else"):
        result_file(tmp_path / "out" / "a.json", tmp_path / "out", "JSON")
    with pytest.raises(UsageError, match="there is no folder"):
        result_file(tmp_path / "none" / "a.json", tmp_path / "out", "JSON")
