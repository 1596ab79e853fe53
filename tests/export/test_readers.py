"""Each format by its reader: pycocotools, supervision, datasets; Label Studio's and FiftyOne's as documented."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from photon.export.export import write_export
from photon.export.options import ExportOptions
from tests.evaluate.outputs import failed, found, spot
from tests.export.runs import ALL, RED, SIZE, encoded, red_found, write_run

#: Exact in float32, and not in whole pixels of 64 x 32.
ODD = (0.1015625, 0.203125, 0.40234375, 0.90625)
NAMES = ["a b/x.jpg", "a b/y z.png", "broken.jpg", "empty.jpg", "x.jpg", "ä/日本 x.jpg"]


@pytest.fixture
def out(workplace: Path) -> Path:
    """Six rows: names of all kinds, one that failed, one in which nothing was found."""
    answers: dict[str, Any] = {
        "a b/x.jpg": {"things": [found("dog", ODD, 0.25), found("cat", (0, 0, 1, 1), 0.75)], "cap": "a cat"},
        "a b/y z.png": {"spots": [spot("cat", 0.25, 0.75, 0.5)], "count": "2"},
        "ä/日本 x.jpg": red_found(),
        "broken.jpg": {task["name"]: failed("IMAGE_TRUNCATED") for task in ALL},
        "x.jpg": {"things": [found("cat", (0.5, 0.5, 0.5, 0.9), 0.5)]},  # no area
    }
    pictures = {name: encoded(form="PNG" if name.endswith("png") else "JPEG") for name in NAMES}
    return write_run(pictures, answers, ALL)


def export(out: Path, form: str, **options: Any) -> str:
    return write_export(out, form, Path("made"), ExportOptions(**options)).text()


def coco(path: str) -> Any:
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(path)


def test_coco_by_pycocotools(out: Path) -> None:
    told = export(out, "coco")
    assert told == (
        "wrote made (coco): 5 rows, 3 boxes, 1 points; failed rows left out: 1; boxes without area left out: 1; "
        "coco cannot hold cap (caption), count (query)"
    )
    read = coco("made/annotations/instances.json")
    images = {image["file_name"]: image for image in read.loadImgs(read.getImgIds())}
    assert list(images) == [name for name in NAMES if name != "broken.jpg"]
    assert {(image["width"], image["height"]) for image in images.values()} == {SIZE}
    assert [category["name"] for category in read.loadCats([1, 2])] == ["cat", "dog"]
    dog, cat = read.loadAnns(read.getAnnIds(imgIds=[images["a b/x.jpg"]["id"]]))
    x, y = ODD[0] * 64, ODD[1] * 32
    width, height = (ODD[2] - ODD[0]) * 64, (ODD[3] - ODD[1]) * 32
    assert (dog["category_id"], dog["bbox"], dog["area"]) == (2, [x, y, width, height], width * height)
    assert (dog["score"], dog["iscrowd"], dog["task"]) == (0.25, 0, "things")
    assert (cat["category_id"], cat["bbox"]) == (1, [0, 0, 64, 32])
    assert read.getAnnIds(imgIds=[images["empty.jpg"]["id"]]) == []
    assert read.getAnnIds(imgIds=[images["x.jpg"]["id"]]) == [], "a box without area is no box"
    assert not Path("made/images").exists()


def test_coco_points_are_keypoints_of_one(out: Path) -> None:
    export(out, "coco")
    read = coco("made/annotations/keypoints.json")
    assert [category["keypoints"] for category in read.loadCats(read.getCatIds())] == [["point"]], (
        "its own classes alone"
    )
    (point,) = read.loadAnns(read.getAnnIds())
    assert read.loadImgs([point["image_id"]])[0]["file_name"] == "a b/y z.png"
    assert (point["keypoints"], point["num_keypoints"]) == ([16, 24, 2], 1)


def boxes_of(dataset: Any) -> dict[str, list[tuple[str, tuple[float, ...]]]]:
    """By picture, each box's label and corners in pixels."""
    return {
        Path(path).name: [
            (dataset.classes[number], tuple(map(float, corners)))
            for corners, number in zip(found.xyxy, found.class_id, strict=True)
        ]
        for path, found in dataset.annotations.items()
    }


FLAT = ["a b__x.jpg", "a b__y z.png", "empty.jpg", "x.jpg", "ä__日本 x.jpg"]
#: supervision holds float32.
ODD_PIXELS = tuple(float(np.float32(share * side)) for share, side in zip(ODD, SIZE * 2, strict=True))
BOXES = {
    "a b__x.jpg": [("dog", ODD_PIXELS), ("cat", (0, 0, 64, 32))],
    "a b__y z.png": [],
    "ä__日本 x.jpg": [("cat", RED)],
    "empty.jpg": [],
    "x.jpg": [],
}


def test_coco_by_supervision(out: Path) -> None:
    sv = pytest.importorskip("supervision")
    export(out, "coco", images="copy")
    read = sv.DetectionDataset.from_coco("made/images", "made/annotations/instances.json")
    assert read.classes == ["cat", "dog"]
    assert boxes_of(read) == BOXES


def test_yolo_by_supervision(out: Path) -> None:
    sv = pytest.importorskip("supervision")
    assert export(out, "yolo").endswith("yolo cannot hold spots (point), cap (caption), count (query)")
    read = sv.DetectionDataset.from_yolo("made/images/train", "made/labels/train", "made/data.yaml")
    assert read.classes == ["cat", "dog"]
    assert boxes_of(read) == BOXES
    assert {Path(path).read_bytes() for path in read.image_paths if path.endswith("jpg")} == {encoded()}
    assert Path("made/labels/train/empty.txt").read_text() == "", "nothing there is an empty file, not a missing one"
    assert not Path("made/labels/train/broken.txt").exists()


def test_yolo_names_parts_that_trainers_want(out: Path) -> None:
    from ruamel.yaml import YAML

    export(out, "yolo", images="none")
    assert YAML(typ="safe").load(Path("made/data.yaml")) == {
        "train": "images/train",
        "val": "images/train",
        "names": {0: "cat", 1: "dog"},
    }
    line = Path("made/labels/train/a b__x.txt").read_text().splitlines()[0]
    middle = [(ODD[0] + ODD[2]) / 2, (ODD[1] + ODD[3]) / 2, ODD[2] - ODD[0], ODD[3] - ODD[1]]
    assert [float(value) for value in line.split()] == [1, *middle]


def test_voc_by_supervision(out: Path) -> None:
    sv = pytest.importorskip("supervision")
    export(out, "voc")
    read = sv.DetectionDataset.from_pascal_voc("made/JPEGImages", "made/Annotations")
    whole = tuple(map(round, ODD_PIXELS))
    assert boxes_of(read) == {**BOXES, "a b__x.jpg": [("dog", whole), ("cat", (0, 0, 64, 32))]}
    tree = ElementTree.parse("made/Annotations/ä__日本 x.xml")
    assert [tree.findtext(f"size/{side}") for side in ("width", "height")] == ["64", "32"]
    assert tree.findtext("filename") == "ä__日本 x.jpg"
    assert Path("made/ImageSets/Main/trainval.txt").read_text().split("\n") == [*(Path(n).stem for n in FLAT), ""]


def test_hf_by_datasets(out: Path) -> None:
    from datasets import ClassLabel, load_dataset

    export(out, "hf")
    read = load_dataset("made", split="train", cache_dir="cache")
    assert read.features["objects"]["category"].feature == ClassLabel(names=["cat", "dog"])
    assert read["file_name"] == [name for name in NAMES if name != "broken.jpg"]
    first, second, third = read[0], read[1], read[2]
    x, y, width, height = ODD[0] * 64, ODD[1] * 32, (ODD[2] - ODD[0]) * 64, (ODD[3] - ODD[1]) * 32
    assert first["objects"] == {
        "bbox": [[x, y, width, height], [0, 0, 64, 32]],
        "category": [1, 0],
        "score": [0.25, 0.75],
        "task": ["things", "things"],
    }
    assert (first["cap"], first["count"], first["folder"], first["width"]) == ("a cat", "no", "a b", 64)
    assert second["objects"]["bbox"] == []
    assert second["points"] == {"point": [[16, 24]], "category": [0], "score": [0.5], "task": ["spots"]}
    assert third["image"].size == SIZE
    assert pq.read_table("made/data/train-00000.parquet")["image"][2].as_py()["bytes"] == encoded(), "not re-encoded"


def test_the_card_tells_who_and_how_many(out: Path) -> None:
    from huggingface_hub import DatasetCard

    from photon.export.splits import Splits

    export(out, "hf", splits=Splits.parse("train=0.5,test=0.5"), min_score=0.3)
    card = DatasetCard.load("made/README.md")
    assert card.data.annotations_creators == ["machine-generated"]
    assert [entry["split"] for entry in card.data.to_dict()["configs"][0]["data_files"]] == ["train", "test"]
    lines = card.text.splitlines()
    for line in ("| model | photon://null |", "| lowest score | 0.3 |", "| IMAGE_TRUNCATED | 1 |", "| all | 5 |"):
        assert line in lines
    from datasets import load_dataset

    read = load_dataset("made", cache_dir="cache")
    counted = {name: len(rows) for name, rows in read.items()}
    assert sum(counted.values()) == 5
    assert all(f"| {name} | {count} |" in lines for name, count in counted.items())


@pytest.mark.parametrize("images", ["link", "none"])
def test_hf_without_embedded_pictures(out: Path, images: str) -> None:
    from datasets import load_dataset

    export(out, "hf", images=images)
    read = load_dataset("made", split="train", cache_dir="cache")
    if images == "none":
        assert "image" not in read.features
    else:
        assert read[0]["image"].size == SIZE
        held = pq.read_table("made/data/train-00000.parquet")["image"][0].as_py()
        assert held == {"bytes": None, "path": str(Path("photos/a b/x.jpg").absolute())}
    assert read[0]["file_name"] == "a b/x.jpg"


def test_fiftyone_as_documented(out: Path) -> None:
    """The form of its FiftyOneDatasetImporter for a metadata.json without a version."""
    export(out, "fiftyone")
    assert "version" not in json.loads(Path("made/metadata.json").read_text())
    samples = json.loads(Path("made/samples.json").read_text())["samples"]
    assert [sample["filepath"] for sample in samples] == [f"data/{name}" for name in FLAT]
    assert all(Path("made", sample["filepath"]).is_file() for sample in samples)
    assert samples[0]["metadata"] == {"_cls": "ImageMetadata", "width": 64, "height": 32}
    assert samples[0]["things"]["_cls"] == "Detections"
    assert samples[0]["things"]["detections"][0] == {
        "_cls": "Detection",
        "label": "dog",
        "bounding_box": [ODD[0], ODD[1], ODD[2] - ODD[0], ODD[3] - ODD[1]],
        "confidence": 0.25,
    }
    assert samples[0]["cap"] == "a cat"
    assert samples[1]["spots"] == {
        "_cls": "Keypoints",
        "keypoints": [{"_cls": "Keypoint", "label": "cat", "points": [[0.25, 0.75]], "confidence": [0.5]}],
    }
    assert samples[2]["things"] == {"_cls": "Detections", "detections": []}


def test_label_studio_as_documented(out: Path) -> None:
    export(out, "labelstudio")
    config = ElementTree.parse("made/config.xml").getroot()
    controls = {tag.get("name"): tag for tag in config if tag.get("toName")}
    assert {name: tag.tag for name, tag in controls.items()} == {
        "things": "RectangleLabels",
        "spots": "KeyPointLabels",
        "cap": "TextArea",
        "count": "TextArea",
    }
    tasks = json.loads(Path("made/tasks.json").read_text())
    assert [task["data"]["row_id"] for task in tasks] == [name for name in NAMES if name != "broken.jpg"]
    for task in tasks:
        served = parse_qs(urlparse(task["data"]["image"]).query)["d"][0]
        with Image.open(Path("made", served)) as picture:
            assert picture.size == SIZE
        for region in task["predictions"][0]["result"]:
            control = controls[region["from_name"]]
            assert region["type"] == control.tag.lower()
            assert region["to_name"] == control.get("toName") == "image"
            if control.tag != "TextArea":
                assert {*region["value"][region["type"]]} <= {label.get("value") for label in control}
    dog = tasks[0]["predictions"][0]["result"][0]
    box = {"x": 100 * ODD[0], "y": 100 * ODD[1], "width": 100 * (ODD[2] - ODD[0]), "height": 100 * (ODD[3] - ODD[1])}
    assert dog["value"] == {**box, "rotation": 0, "rectanglelabels": ["dog"]}
    assert (dog["original_width"], dog["original_height"], dog["score"]) == (64, 32, 0.25)
    point, caption, count = tasks[1]["predictions"][0]["result"]
    assert (point["value"]["x"], point["value"]["y"], point["value"]["keypointlabels"]) == (25, 75, ["cat"])
    assert (caption["value"]["text"], count["value"]["text"]) == (["no"], ["2"])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_rows_with_pixels_by_datasets(out: Path, form: str) -> None:
    from datasets import load_dataset

    told = export(out, form)
    assert told == f"wrote made ({form}): 5 rows, 3 boxes, 1 points; failed rows left out: 1"
    Path("made").rename(f"rows.{form}")
    read = load_dataset(
        "json" if form == "jsonl" else form, data_files=f"rows.{form}", split="train", cache_dir="cache"
    )
    assert read["row_id"] == [name for name in NAMES if name != "broken.jpg"]
    dog = read[0]["things"]["objects"][0]
    assert [dog[name] for name in ("x_min", "y_min", "x_max", "y_max")] == list(ODD)
    pixels = [share * side for share, side in zip(ODD, SIZE * 2, strict=True)]
    assert [dog[f"{name}_px"] for name in ("x_min", "y_min", "x_max", "y_max")] == pixels
    assert (read[1]["spots"]["points"][0]["x_px"], read[1]["spots"]["points"][0]["y_px"]) == (16, 24)
    assert read[0]["cap"]["text"] == "a cat"
    assert read[0]["folder"] == "a b"
    assert len(read[3]["things"]["objects"]) == 1, "a copy of the rows keeps what has no area"
