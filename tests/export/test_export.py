"""What every format shares: names, choices, splits, what is refused, and that an export is whole or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from photon.cli import app
from photon.data.writer import PartWriter
from photon.errors import InputError, OutputError, UsageError
from photon.export import export as module
from photon.export.export import write_export
from photon.export.names import safe_name
from photon.export.options import FORMATS, ExportOptions
from photon.export.splits import Splits
from photon.job.output import RunOutput
from photon.job.run import run as run_job
from photon.manifest.load import load_manifest
from tests.evaluate.outputs import CAPTION, DETECT, POINT, failed, found, spot
from tests.export.runs import ALL, encoded, red_found, write_parquet_run, write_run
from tests.job.inputs import write_parquet

FILE = encoded(form="PNG")
BOX = (0.25, 0.25, 0.75, 0.75)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", "out", *arguments])


def rows_of(path: str = "made") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def export(form: str = "jsonl", **options: Any) -> str:
    return write_export(Path("out"), form, Path("made"), ExportOptions(**options)).text()


def test_rows_of_one_basename_do_not_collide(workplace: Path) -> None:
    names = ["a/x.png", "a__x.png", "b/x.png", "x.jpg", "x.png"]
    write_run({name: encoded(form="JPEG" if name == "x.jpg" else "PNG") for name in names}, {
        name: {"things": [found("cat", (0, 0, (n + 1) / 8, 1), 0.5)]} for n, name in enumerate(names)
    })  # fmt: skip
    export("yolo")
    made = sorted(path.name for path in Path("made/images/train").iterdir())
    assert made == ["a__x-row1.png", "a__x.png", "b__x.png", "x-row4.png", "x.jpg"]
    widths = {path.stem: float(path.read_text().split()[3]) * 8 for path in Path("made/labels/train").iterdir()}
    assert widths == {"a__x": 1, "a__x-row1": 2, "b__x": 3, "x": 4, "x-row4": 5}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("/data/a b/x.jpg", "data__a b__x.jpg"),
        ("../x.jpg", "x.jpg"),
        ("s3://bucket/x.png", "s3___bucket__x.png"),
        ("rows.parquet:0:12", "rows.parquet_0_12"),
        ("..", "row"),
        ("a\nb\\c", "a_b_c"),
        ("日本/é.JPG", "日本__é.JPG"),
        ("é" * 200 + "/x.jpg", "é" * 88 + "__x.jpg"),
    ],
)
def test_safe_names(name: str, safe: str) -> None:
    assert safe_name(name) == safe
    assert len(os.fsencode(safe)) < 200


def test_names_come_from_the_folder_where_ids_are_positions(workplace: Path) -> None:
    write_run({"a/x.png": FILE}, id=None)
    export("coco")
    image = json.loads(Path("made/annotations/instances.json").read_text())["images"][0]
    assert (image["file_name"], image["row_id"]) == ("a/x.png", "photos/a/x.png:0:0")


def test_failed_rows_are_never_empty_truth(workplace: Path) -> None:
    answers = {
        "0.png": {"things": failed("IMAGE_TRUNCATED"), "cap": failed()},
        "1.png": {"cap": failed("PROMPT_NULL")},
    }
    write_run({f"{n}.png": FILE for n in range(3)}, answers, (DETECT, CAPTION))
    assert export("yolo").startswith(
        "wrote made (yolo): 2 rows, 0 boxes; failed rows left out: 1; yolo cannot hold cap"
    )
    assert sorted(path.name for path in Path("made/labels/train").iterdir()) == ["1.txt", "2.txt"]
    told = write_export(Path("out"), "jsonl", Path("rows")).text()
    assert told == "wrote rows (jsonl): 1 rows, 0 boxes; failed rows left out: 2"
    assert [row["row_id"] for row in rows_of("rows")] == ["2.png"]


def test_scores_classes_and_tasks_are_chosen(workplace: Path) -> None:
    boxes = [found("cat", BOX, 0.9), found("dog", BOX, 0.9), found("cat", BOX, 0.5)]
    write_run({"0.png": FILE}, {"0.png": {"things": boxes, "spots": [spot("cat", 0.5, 0.5, 0.9)]}}, (DETECT, POINT))
    export(min_score=0.9)  # as it was stored, in float32
    assert [found["label"] for found in rows_of()[0]["things"]["objects"]] == ["cat", "dog"]
    write_export(Path("out"), "coco", Path("dogs"), ExportOptions(classes=("dog",), tasks=("things",)))
    read = json.loads(Path("dogs/annotations/instances.json").read_text())
    assert [category["name"] for category in read["categories"]] == ["dog"]
    assert [found["category_id"] for found in read["annotations"]] == [1]
    assert not Path("dogs/annotations/keypoints.json").exists()


def test_classes_that_rows_filled_in_are_found(workplace: Path) -> None:
    task = {"name": "things", "type": "detect", "objects": ["cat", "{folder}"]}
    boxes = [found("b", BOX, 0.9), found("a", BOX, 0.9), found("cat", BOX, 0.9)]
    write_run({"0.png": FILE}, {"0.png": {"things": boxes}}, (task,))
    export("yolo")
    numbers = [line.split()[0] for line in Path("made/labels/train/0.txt").read_text().splitlines()]
    assert numbers == ["2", "1", "0"], "the manifest's first, then what else there is by name"
    assert '1: "a"\n  2: "b"' in Path("made/data.yaml").read_text()


def test_labels_of_all_kinds_can_be_read_back(workplace: Path) -> None:
    """What XML and YAML have to escape, or may not hold at all."""
    from xml.etree import ElementTree

    from ruamel.yaml import YAML

    labels = ['<a> & "b"', "yes", "1.10", "a: b # c", "x\x01y", "é 日本"]
    task = {"name": "things", "type": "detect", "objects": ["{folder}"]}
    write_run({"0.png": FILE}, {"0.png": {"things": [found(label, BOX, 0.9) for label in labels]}}, (task,))
    for form in ("yolo", "voc", "labelstudio"):
        write_export(Path("out"), form, Path(form))
    assert [*YAML(typ="safe").load(Path("yolo/data.yaml"))["names"].values()] == sorted(labels)
    shown = [label.replace("\x01", "\ufffd") for label in labels]
    tree = ElementTree.parse("voc/Annotations/0.xml")
    assert [found.text for found in tree.iterfind("object/name")] == shown
    config = ElementTree.parse("labelstudio/config.xml")
    (task_told,) = json.loads(Path("labelstudio/tasks.json").read_text())
    regions = task_told["predictions"][0]["result"]
    assert [region["value"]["rectanglelabels"] for region in regions] == [[label] for label in shown]
    assert {label.get("value") for label in config.iter("Label")} == set(shown)


def test_a_run_without_any_label_has_no_names(workplace: Path) -> None:
    from datasets import load_dataset
    from ruamel.yaml import YAML

    write_run({"0.png": FILE}, tasks=({"name": "things", "type": "detect", "objects": ["{folder}"]},))
    write_export(Path("out"), "yolo", Path("yolo"))
    assert YAML(typ="safe").load(Path("yolo/data.yaml"))["names"] == {}
    write_export(Path("out"), "hf", Path("hf"))
    assert load_dataset("hf", split="train", cache_dir="cache")[0]["objects"]["category"] == []


def test_splits_are_by_id_and_whole(workplace: Path) -> None:
    names = [f"{n}.png" for n in range(40)]
    write_run(dict.fromkeys(names, FILE))
    splits = Splits.parse("train=0.8,val=0.2")
    export("coco", splits=splits, images="copy")
    parts = {}
    for part in ("train", "val"):
        images = json.loads(Path(f"made/annotations/instances_{part}.json").read_text())["images"]
        parts[part] = {image["row_id"] for image in images}
        assert {path.name for path in Path("made/images", part).iterdir()} == parts[part]
    assert parts["train"] | parts["val"] == set(names)
    assert not parts["train"] & parts["val"]
    assert parts["val"] == {name for name in names if splits.of(name) == "val"}


def test_a_split_gets_its_share() -> None:
    splits = Splits.parse("train=0.7, val=0.2, test=0.1")
    counts = dict.fromkeys(splits.names, 0)
    for n in range(10_000):
        counts[splits.of(f"row{n}")] += 1
    assert all(abs(counts[name] - share) < 200 for name, share in (("train", 7000), ("val", 2000), ("test", 1000)))
    assert splits.of("row0") == Splits.parse("train=0.7,val=0.2,test=0.1").of("row0")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("train", "gives train the share ''"),
        ("train=x", "gives train the share 'x'"),
        ("a/b=1", "names 'a/b'"),
        ("a=0.5,a=0.5", "names one part twice"),
        ("a=0.5,b=0.6", "comes to 1.1"),
        ("a=1,b=0", "are above 0"),
    ],
)
def test_wrong_splits(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Splits.parse(text)


def test_links_lead_to_the_pictures(workplace: Path) -> None:
    write_run({"a b/x.png": FILE})
    export("yolo", images="link")
    link = Path("made/images/train/a b__x.png")
    assert link.is_symlink()
    assert link.resolve() == Path("photos/a b/x.png").resolve()


def test_names_without_a_suffix_get_the_pictures_own(workplace: Path) -> None:
    write_parquet_run({"shots/1": encoded(), "shots/2": FILE})
    export("voc")
    assert sorted(path.name for path in Path("made/JPEGImages").iterdir()) == ["shots__1.jpg", "shots__2.png"]
    assert Path("made/JPEGImages/shots__2.png").read_bytes() == FILE
    with pytest.raises(UsageError, match=r"needs pictures that are files.*--images copy"):
        write_export(Path("out"), "yolo", Path("links"), ExportOptions(images="link"))


@pytest.mark.parametrize(("change", "told"), [
    (lambda: Path("photos/1.png").write_bytes(encoded()), "row 1.png: the picture is not the one that the run saw"),
    (lambda: Path("photos/1.png").unlink(), "row 1.png: the input does not hold it any more"),
    (lambda: Path("photos").rename("elsewhere"), "photos is no folder"),
])  # fmt: skip
def test_other_pictures_end_the_export(workplace: Path, change: Any, told: str) -> None:
    write_run({f"{n}.png": FILE for n in range(3)}, {"0.png": red_found()})
    change()
    there = sorted(os.listdir())
    with pytest.raises(InputError, match=f"cannot be read again.*{told}.*--images none"):
        export("yolo")
    assert sorted(os.listdir()) == there
    assert export("yolo", images="none").startswith("wrote made (yolo): 3 rows, 1 boxes")


def test_from_a_run_to_an_export(workplace: Path, manifest_file: Callable[..., Path]) -> None:
    """The scripted answers of the null model, through the job as it is."""
    input = "{folder: photos, id: file_name}"
    pictures = {f"{n}.jpg": encoded(orientation=n) if n != 3 else b"broken" for n in range(1, 7)}
    for name, data in pictures.items():
        Path("photos", name).parent.mkdir(exist_ok=True)
        Path("photos", name).write_bytes(data)
    task = "[{name: things, type: detect, objects: [cat, dog]}]"
    run_job(load_manifest(manifest_file(input=input, tasks=task, errors="{max_failure_rate: 1}")))
    told = export("yolo")
    assert "5 rows" in told
    assert told.endswith("failed rows left out: 1")
    there = {path.name: path.read_bytes() for path in Path("made/images/train").iterdir()}
    assert there == {name: data for name, data in pictures.items() if name != "3.jpg"}
    for row in RunOutput(Path("out")).rows(["row_id", "things"]):
        if row["row_id"] != "3.jpg":
            boxes = [found for found in row["things"]["objects"] if found["x_max"] > found["x_min"]]
            lines = Path("made/labels/train", row["row_id"]).with_suffix(".txt").read_text().splitlines()
            widths = [float(line.split()[3]) for line in lines]
            assert widths == [found["x_max"] - found["x_min"] for found in boxes]


def test_rows_that_came_later_than_their_neighbours_are_found(workplace: Path) -> None:
    """As after a second run, over an input that grew in the middle."""
    shades = {f"{n}.png": encoded(Image.new("RGB", (8, 8), (n, n, n)), form="PNG") for n in range(4)}
    write_run(shades)
    output = RunOutput(Path("out"))
    rows = list(output.rows(output.schema.names))
    later = [rows[n] for n in (0, 2, 3, 1)]
    for number, part in enumerate((later[:3], later[3:])):
        PartWriter(Path("out/data"), output.schema).write(number, part)
    export("yolo")
    assert {path.name: path.read_bytes() for path in Path("made/images/train").iterdir()} == shades


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_memory_does_not_grow_with_the_run(workplace: Path, form: str) -> None:
    """The most memory that a process of its own took, over 2 and 16 parts of a thousand rows."""
    write_run({"0.png": FILE}, {"0.png": {"things": [found("cat", BOX, 0.5)] * 5}})
    output = RunOutput(Path("out"))
    (row,) = output.rows(output.schema.names)
    code = (
        "import resource, sys; from pathlib import Path; from photon.export.export import write_export; "
        "from photon.export.options import ExportOptions; "
        "write_export(Path('out'), sys.argv[1], Path(sys.argv[2]), ExportOptions(images='none')); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    code = code.replace("'none'", "None") if FORMATS[form].is_file else code
    peaks, written = [], 0
    for parts in (2, 16):
        for number in range(written, parts):
            part = [{**row, "row_id": f"{number}-{n}"} for n in range(1000)]
            PartWriter(Path("out/data"), output.schema).write(number, part)
        written = parts
        done = subprocess.run(
            [sys.executable, "-c", code, form, f"made{parts}"], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < (80 if form in ("parquet", "hf") else 15), "a row group, or next to nothing"


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_whole_or_not_there(workplace: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run({f"{n}.png": FILE for n in range(3)}, tasks=ALL)
    before = sorted(os.listdir())
    real = module.export_rows

    def two(*arguments: Any) -> Any:
        rows = real(*arguments)
        yield next(rows)
        yield next(rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "export_rows", two)
    with pytest.raises(KeyboardInterrupt):
        export(form)
    assert sorted(os.listdir()) == before
    monkeypatch.setattr(module, "export_rows", real)
    left = Path(".made.export.tmp")  # of an export that was killed
    left.mkdir()
    (left / "old").touch()
    export(form)
    assert sorted(os.listdir()) == sorted([*before, "made"])
    assert not list(Path("made").rglob("old"))


@pytest.mark.parametrize("form", FORMATS)
def test_places_that_are_taken_are_refused(workplace: Path, form: str) -> None:
    write_run({"0.png": FILE}, tasks=ALL)
    Path("made").mkdir()
    if FORMATS[form].is_file:
        with pytest.raises(OutputError, match="made is a folder"):
            export(form)
        Path("made").rmdir()
        Path("made").write_text("mine")
        with pytest.raises(OutputError, match="made is there already; remove it"):
            export(form)
        assert Path("made").read_text() == "mine"
        return
    export(form)  # into an empty folder
    with pytest.raises(OutputError, match=r"made is not empty \(.*\); remove it"):
        export(form)
    with pytest.raises(OutputError, match=r"m.yaml is a file"):
        write_export(Path("out"), form, Path("m.yaml"))
    with pytest.raises(UsageError, match="holds results and nothing else"):
        write_export(Path("out"), form, Path("out/made"))
    with pytest.raises(UsageError, match="there is no folder nowhere"):
        write_export(Path("out"), form, Path("nowhere/made"))


def test_the_command_line(workplace: Path) -> None:
    write_run({"0.png": FILE, "1.png": FILE}, {"0.png": red_found(0.25), "1.png": red_found()}, (DETECT, CAPTION))
    done = run("--to", "coco", "--out", "made", "--min-score", "0.5", "--task", "things", "--classes", "cat")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "wrote made (coco): 2 rows, 1 boxes\n"
    for code, told, *arguments in (
        (2, "there is no format coko; did you mean coco?", "--to", "coko", "--out", "x"),
        (2, "out has no task thing; did you mean things?", "--to", "coco", "--out", "x", "--task", "thing"),
        (2, "no task was asked for 'cats' and none found it; did you mean cat?", "--to", "yolo", "--out", "x",
         "--classes", "cats"),
        (2, "yolo cannot hold any of the tasks cap (caption)", "--to", "yolo", "--out", "x", "--task", "cap"),
        (2, "--min-score is from 0 to 1, not 2", "--to", "yolo", "--out", "x", "--min-score", "2"),
        (2, "--images is copy, link or none, not all", "--to", "yolo", "--out", "x", "--images", "all"),
        (2, "jsonl is one file and holds no pictures", "--to", "jsonl", "--out", "x", "--images", "copy"),
        (2, "--frame is oriented or stored, not up", "--to", "yolo", "--out", "x", "--frame", "up"),
        (2, "--bake-exif turns pictures, and --frame stored", "--to", "voc", "--out", "x", "--bake-exif", "--frame",
         "stored"),
        (2, "--bake-exif writes pictures; give --images copy", "--to", "coco", "--out", "x", "--bake-exif"),
        (2, "comes to 0.5", "--to", "yolo", "--out", "x", "--split", "a=0.5"),
        (5, "made is not empty", "--to", "coco", "--out", "made"),
    ):  # fmt: skip
        done = run(*arguments)
        assert (done.exit_code, done.stdout) == (code, ""), done.stderr
        assert done.stderr.startswith("photon-batch: error: ")
        assert told in done.stderr
        assert not Path("x").exists()


def test_names_that_a_format_has_of_its_own(workplace: Path) -> None:
    write_run({"0.png": FILE}, tasks=({**DETECT, "name": "tags"}, {**CAPTION, "name": "objects"}))
    with pytest.raises(UsageError, match="FiftyOne has a field tags of its own"):
        export("fiftyone")
    with pytest.raises(UsageError, match="the data set has a column objects of its own"):
        export("hf")


def test_a_column_of_the_input_that_is_called_split(manifest_file: Callable[..., Path]) -> None:
    """It is as it was, whatever its type; only --split would need its name."""
    write_parquet(Path("rows.parquet"), [FILE] * 3, split=[7, None, 9])
    run_job(load_manifest(manifest_file(input="{parquet: rows.parquet, id: name, keep: [split]}")))
    export("parquet")
    assert pq.read_table("made")["split"].to_pylist() == [7, None, 9]
    with pytest.raises(UsageError, match="a column split of its own"):
        write_export(Path("out"), "parquet", Path("x"), ExportOptions(splits=Splits.parse("a=0.5,b=0.5")))
