"""A reviewed export becomes truth: from export over an edit and ``correct`` to the figures of ``eval``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from photon.cli import app
from photon.errors import InputError, UsageError
from photon.export.correct import correct
from photon.export.export import write_export
from photon.export.options import ExportOptions
from tests.evaluate.outputs import CAPTION, DETECT, QUERY, failed, found
from tests.export.runs import INSIDE, ORIENTATIONS, RED, encoded, red_found, write_run

FILE = encoded(form="PNG")
A, B = (0.0, 0.0, 0.25, 0.5), (0.5, 0.5, 0.75, 1.0)
OTHER = {"name": "others", "type": "detect", "objects": ["dog", "cow"]}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def export(form: str = "coco", **options: Any) -> Path:
    """The file to review."""
    write_export(Path("out"), form, Path("made"), ExportOptions(**options))
    return Path("made/annotations/instances.json" if form == "coco" else "made/tasks.json")


def edit(file: Path, change: Callable[[Any], object]) -> Path:
    data = json.loads(file.read_text())
    change(data)
    Path("reviewed.json").write_text(json.dumps(data))
    return Path("reviewed.json")


def truth_of(file: Path, **options: Any) -> dict[str, Any]:
    correct(Path("out"), file, Path("truth.parquet"), **options)
    rows = pq.read_table("truth.parquet").to_pylist()
    Path("truth.parquet").unlink()
    return {row["row_id"]: row["truth"] for row in rows}


def corners_of(box: dict[str, Any]) -> tuple[float, ...]:
    return tuple(box[name] for name in ("x_min", "y_min", "x_max", "y_max"))


def figures() -> dict[str, Any]:
    done = run("eval", "out", "--truth", "truth", "--truth-file", "truth.parquet", "--json", "-")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["tasks"]


def accept(tasks: list[dict[str, Any]]) -> None:
    """What Label Studio's JSON export holds once somebody has submitted every prediction as it was."""
    for task in tasks:
        result = task.pop("predictions")[0]["result"]
        task["annotations"] = [{"result": result, "was_cancelled": False}]


@pytest.fixture
def out(workplace: Path) -> Path:
    """Three rows that were answered, two cats in the first; one that failed."""
    answers = {
        "0.png": {"things": [found("cat", A, 0.9), found("cat", B, 0.8)], "count": "2"},
        "1.png": {"things": [found("dog", B, 0.7)], "count": "1"},
        "2.png": {"count": "none"},
        "3.png": {"things": failed(), "count": failed()},
    }
    return write_run({f"{n}.png": FILE for n in range(4)}, answers, (DETECT, QUERY))


def test_from_export_to_figures_by_coco(out: Path) -> None:
    def review(data: Any) -> None:
        data["annotations"][1]["bbox"] = [0, 16, 16, 16]  # the second cat is elsewhere
        data["annotations"][2]["category_id"] = 1  # the dog is a cat

    file = edit(export(), review)
    done = run("correct", "out", "--from", str(file), "--out", "truth.parquet")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == (
        "wrote truth.parquet: truth of 3 rows, 3 boxes, for things. "
        "Go on with eval OUTPUT --truth truth --truth-file truth.parquet\n"
    )
    (things,) = figures().values()
    assert (things["rows"], things["rows_without_truth"]) == (3, 1)
    micro = things["micro"]
    assert (micro["true"], micro["found"], micro["right"]) == (3, 3, 1)
    assert (micro["precision"], micro["recall"]) == (1 / 3, 1 / 3)
    cat = things["classes"]["cat"]
    assert (cat["true"], cat["found"], cat["right"]) == (3, 2, 1)
    assert things["classes"]["dog"]["found"] == 1


def test_from_export_to_figures_by_label_studio(out: Path) -> None:
    def review(tasks: Any) -> None:
        accept(tasks)
        regions = tasks[0]["annotations"][0]["result"]
        del regions[1]  # one cat too many
        regions[-1]["value"]["text"] = ["1"]
        tasks[2]["annotations"][0]["was_cancelled"] = True  # skipped by the reviewer

    file = edit(export("labelstudio"), review)
    made = correct(out, file, Path("truth.parquet"))
    assert "1 pictures without an annotation are left out" in made.text()
    told = figures()
    micro = told["things"]["micro"]
    assert (micro["true"], micro["found"], micro["right"]) == (2, 3, 2)
    assert (told["count"]["rows"], told["count"]["exact_match"]) == (2, 0.5)


def test_an_untouched_review_says_that_all_is_right(out: Path) -> None:
    for form, change in (("coco", lambda data: None), ("labelstudio", accept)):
        truth = truth_of(edit(export(form), change))
        boxes = {row: [(box["label"], corners_of(box)) for box in cell["things"]] for row, cell in truth.items()}
        assert boxes == {"0.png": [("cat", A), ("cat", B)], "1.png": [("dog", B)], "2.png": []}
        Path("made").rename(form)


@pytest.mark.parametrize("frame", ["oriented", "stored", None])
@pytest.mark.parametrize("exif", ["apply", "ignore"])
def test_boxes_come_back_into_the_recorded_frame(workplace: Path, frame: str | None, exif: str) -> None:
    pictures = {f"{n}.jpg": encoded(orientation=n) for n in ORIENTATIONS}
    answers = {name: red_found() for name in pictures}
    write_run(pictures, answers, exif=exif)
    baked = {"bake_exif": True, "images": "copy"}
    truth = truth_of(export(**({"frame": frame} if frame else baked)))
    assert {name: corners_of(cell["things"][0]) for name, cell in truth.items()} == dict.fromkeys(pictures, INSIDE)


def test_a_frame_that_the_tool_forgot_is_asked_for(workplace: Path) -> None:
    write_run({"6.jpg": encoded(orientation=6)}, {"6.jpg": red_found()})

    def forget(data: Any) -> None:
        del data["images"][0]["frame"]

    file = edit(export(frame="stored"), forget)
    with pytest.raises(UsageError, match=r"6.jpg is turned .* does not say how it was seen; say --frame"):
        truth_of(file)
    with pytest.raises(UsageError, match=r"6.jpg is 32 x 64 pixels there and 64 x 32 in the run"):
        truth_of(file, frame="oriented")
    (cell,) = truth_of(file, frame="stored").values()
    assert corners_of(cell["things"][0]) == INSIDE == (RED[0] / 64, RED[1] / 32, RED[2] / 64, RED[3] / 32)


def test_rows_are_found_by_name_where_a_tool_kept_nothing_else(workplace: Path) -> None:
    names = ["a/x.png", "a__x.png", "b/x.png"]
    pictures = dict.fromkeys(names, FILE)
    write_run(pictures, {name: {"things": [found("cat", (0, 0, (n + 1) / 4, 1), 0.5)]} for n, name in enumerate(names)})

    def forget(data: Any) -> None:
        del data["info"]
        for image in data["images"]:
            del image["row_id"], image["frame"]
        for annotation in data["annotations"]:
            del annotation["task"], annotation["score"]

    for images in ("none", "copy"):
        truth = truth_of(edit(export(images=images), forget))
        assert {row: corners_of(cell["things"][0])[2] for row, cell in truth.items()} == {
            "a/x.png": 0.25,
            "a__x.png": 0.5,
            "b/x.png": 0.75,
        }
        Path("made").rename(images)


def test_tasks_are_told_apart(workplace: Path) -> None:
    boxes = {"things": [found("dog", A, 0.5)], "others": [found("dog", B, 0.5), found("cow", A, 0.5)]}
    write_run({"0.png": FILE}, {"0.png": boxes}, (DETECT, OTHER, CAPTION))
    file = export()
    (cell,) = truth_of(file).values()
    assert [box["label"] for box in cell["things"]] == ["dog"]
    assert [corners_of(box) for box in cell["others"]] == [B, A]

    def forget(data: Any) -> None:
        del data["info"]
        for annotation in data["annotations"]:
            del annotation["task"]

    lost = edit(file, forget)
    with pytest.raises(UsageError, match=r"does not say which tasks were reviewed.*things, others; name them"):
        truth_of(lost)
    with pytest.raises(UsageError, match="a box of 'dog' does not say which task it is of"):
        truth_of(lost, tasks=("things", "others"))
    with pytest.raises(UsageError, match="cannot hold truth for task cap"):
        truth_of(lost, tasks=("cap",))
    (cell,) = truth_of(lost, tasks=("others",)).values()
    assert [*cell] == ["others"]
    assert len(cell["others"]) == 3


def test_what_does_not_fit_the_run_is_refused(out: Path) -> None:
    file = export()

    def strange(data: Any) -> None:
        data["images"][0]["row_id"] = "elsewhere"

    def twice(data: Any) -> None:
        data["images"][1]["row_id"] = "0.png"

    def small(data: Any) -> None:
        data["images"][0]["width"] = 32

    for change, told in (
        (strange, r"1 pictures are of no row of out, 0.png among them"),
        (twice, "0.png comes twice"),
        (small, r"0.png is 32 x 32 pixels there and 64 x 32 in the run"),
        (lambda data: data.pop("images"), "is neither COCO .* nor Label Studio's JSON"),
        (lambda data: data["annotations"][0].pop("bbox"), r"is not as COCO or Label Studio write it \(KeyError"),
        (lambda data: data["annotations"][0].update(image_id=9), "is of image 9, which is not there"),
    ):
        with pytest.raises(UsageError, match=told):
            truth_of(edit(file, change))
    assert not Path("truth.parquet").exists()
    with pytest.raises(InputError, match=r"cannot read gone.json"):
        truth_of(Path("gone.json"))
    write_export(out, "coco", Path("cats"), ExportOptions(classes=("cat",)))
    with pytest.raises(UsageError, match="was exported for cat alone"):
        truth_of(Path("cats/annotations/instances.json"))


def test_ids_that_repeat_cannot_be_corrected(workplace: Path) -> None:
    write_run({"a/x.png": FILE, "b/x.png": FILE}, id="folder")
    file = export()
    data = json.loads(file.read_text())
    assert [image["row_id"] for image in data["images"]] == ["a", "b"]
    data["images"] = data["images"][:1]
    from photon.data.writer import PartWriter
    from photon.job.output import RunOutput

    output = RunOutput(Path("out"))
    rows = [{**row, "row_id": "a"} for row in output.rows(output.schema.names)]
    PartWriter(Path("out/data"), output.schema).write(0, rows)
    Path("reviewed.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match=r"a fits two rows of out; run with an input.id that tells rows apart"):
        truth_of(Path("reviewed.json"))


def test_label_studio_reviews_that_cannot_be_read(out: Path) -> None:
    file = export("labelstudio")

    def two(tasks: Any) -> None:
        accept(tasks)
        tasks[0]["annotations"] *= 2

    def rotated(tasks: Any) -> None:
        accept(tasks)
        tasks[0]["annotations"][0]["result"][0]["value"]["rotation"] = 30

    def unknown(tasks: Any) -> None:
        accept(tasks)
        tasks[0]["annotations"][0]["result"][0]["from_name"] = "label"

    for change, told in (
        (two, "has 2 annotations; keep the one that is right"),
        (rotated, "is rotated; draw it along"),
        (unknown, "has a box of label; boxes go to the tasks reviewed: things"),
    ):
        with pytest.raises(UsageError, match=told):
            truth_of(edit(file, change))
