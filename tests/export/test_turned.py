"""EXIF: what an export says of a turned picture is where its reader finds it, for all eight orientations."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from photon.errors import UsageError
from photon.export.export import write_export
from photon.export.options import ExportOptions
from tests.evaluate.outputs import DETECT, POINT, found, spot
from tests.export.runs import ORIENTATIONS, RED, encoded, red_found, red_of, write_run

PICTURES = {f"{n}.jpg": encoded(orientation=n) for n in ORIENTATIONS}


@pytest.fixture
def out(workplace: Path) -> Path:
    """One picture held in eight ways; the run saw it upright."""
    return write_run(PICTURES, {name: red_found() for name in PICTURES})


def export(out: Path, form: str, **options: Any) -> None:
    write_export(out, form, Path("made"), ExportOptions(**options))


def ignoring(path: Path) -> Any:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def applying(path: Path) -> Any:
    with Image.open(path) as picture:
        return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))


def by_opencv(path: Path) -> Any:
    cv2 = pytest.importorskip("cv2")
    return cv2.imread(str(path))[..., ::-1]


def assert_coco_fits(pixels_of: Callable[[Path], Any], folder: Path) -> None:
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        read = COCO("made/annotations/instances.json")
    images = read.loadImgs(read.getImgIds())
    assert len(images) == 8
    for image in images:
        pixels = pixels_of(folder / image["file_name"])
        assert (image["height"], image["width"]) == pixels.shape[:2]
        (box,) = read.loadAnns(read.getAnnIds(imgIds=[image["id"]]))
        x, y, width, height = box["bbox"]
        assert (x, y, x + width, y + height) == red_of(pixels)


@pytest.mark.parametrize("form", ["coco", "voc"])
def test_tools_that_differ_are_not_guessed(out: Path, form: str) -> None:
    with pytest.raises(UsageError, match=r"7 of 8 pictures of out are turned by their EXIF orientation") as refused:
        export(out, form)
    assert all(option in str(refused.value) for option in ("--bake-exif", "--frame oriented", "--frame stored"))
    assert not Path("made").exists()


def test_coco_for_a_tool_that_ignores_exif(out: Path) -> None:
    export(out, "coco", frame="stored", images="copy")
    assert_coco_fits(ignoring, Path("made/images"))


def test_coco_for_a_tool_that_applies_exif(out: Path) -> None:
    export(out, "coco", frame="oriented")
    assert_coco_fits(applying, Path("photos"))
    assert_coco_fits(by_opencv, Path("photos"))


def test_baked_pictures_are_the_same_for_all(out: Path) -> None:
    export(out, "coco", bake_exif=True, images="copy")
    for pixels_of in (ignoring, applying, by_opencv):
        assert_coco_fits(pixels_of, Path("made/images"))
    assert Path("made/images/1.jpg").read_bytes() == PICTURES["1.jpg"], "what is upright is left as it is"


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_baked_pixels_are_exact_where_nothing_is_lost(workplace: Path, orientation: int) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8))
    out = write_run({"x.png": encoded(noise, orientation, "PNG")})
    export(out, "coco", bake_exif=True, images="copy")
    with Image.open("made/images/x.png") as baked:
        assert baked.getexif().get(0x0112) is None
        np.testing.assert_array_equal(np.asarray(baked), np.asarray(noise))


def test_a_baked_picture_keeps_its_colour_profile(workplace: Path) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    tag = Image.Exif()
    tag[0x0112] = 3
    file = io.BytesIO()
    Image.new("RGB", (16, 8)).save(file, "JPEG", exif=tag, icc_profile=profile)
    export(write_run({"x.jpg": file.getvalue()}), "coco", bake_exif=True, images="copy")
    with Image.open("made/images/x.jpg") as baked:
        assert baked.info["icc_profile"] == profile


def test_yolo_fits_what_opencv_opens(out: Path) -> None:
    sv = pytest.importorskip("supervision")
    export(out, "yolo")
    read = sv.DetectionDataset.from_yolo("made/images/train", "made/labels/train", "made/data.yaml")
    assert len(read.annotations) == 8
    for path, boxes in read.annotations.items():
        assert tuple(boxes.xyxy[0]) == red_of(by_opencv(Path(path))) == RED


def test_hf_fits_what_datasets_opens(out: Path) -> None:
    from datasets import load_dataset

    export(out, "hf")
    for row in load_dataset("made", split="train", cache_dir="cache"):
        x, y, width, height = row["objects"]["bbox"][0]
        assert (x, y, x + width, y + height) == red_of(row["image"])
        assert (row["width"], row["height"]) == row["image"].size


@pytest.mark.parametrize("form", ["fiftyone", "labelstudio"])
def test_tools_that_show_pictures_upright(out: Path, form: str) -> None:
    export(out, form)
    if form == "fiftyone":
        samples = json.loads(Path("made/samples.json").read_text())["samples"]
        sizes = [(sample["metadata"]["width"], sample["metadata"]["height"]) for sample in samples]
        boxes = [sample["things"]["detections"][0]["bounding_box"] for sample in samples]
    else:
        regions = [task["predictions"][0]["result"][0] for task in json.loads(Path("made/tasks.json").read_text())]
        sizes = [(region["original_width"], region["original_height"]) for region in regions]
        boxes = [[region["value"][side] / 100 for side in ("x", "y", "width", "height")] for region in regions]
    assert sizes == [(64, 32)] * 8
    assert boxes == [[8 / 64, 16 / 32, 16 / 64, 8 / 32]] * 8


@pytest.mark.parametrize("form", ["yolo", "hf"])
def test_a_run_that_ignored_exif_is_turned_for_tools_that_apply_it(workplace: Path, form: str) -> None:
    answers = {}
    for n, (name, data) in enumerate(PICTURES.items(), start=1):
        Path(name).write_bytes(data)
        pixels = ignoring(Path(name))
        x_min, y_min, x_max, y_max = red_of(pixels)
        height, width = pixels.shape[:2]
        corners = (x_min / width, y_min / height, x_max / width, y_max / height)
        answers[name] = {"things": [found("cat", corners, 0.5)], "spots": [spot("cat", corners[0], corners[1], n / 8)]}
    out = write_run(PICTURES, answers, (DETECT, POINT), exif="ignore")
    export(out, form)
    if form == "yolo":
        sv = pytest.importorskip("supervision")
        read = sv.DetectionDataset.from_yolo("made/images/train", "made/labels/train", "made/data.yaml")
        assert [tuple(boxes.xyxy[0]) for boxes in read.annotations.values()] == [RED] * 8
        return
    from datasets import load_dataset

    rows = load_dataset("made", split="train", cache_dir="cache")
    assert [row["objects"]["bbox"] for row in rows] == [[[8, 16, 16, 8]]] * 8
    corners_of_red = [(8, 16), (24, 16), (24, 24), (8, 24)] * 2  # which one was at the top left as stored
    at = {1: 0, 2: 1, 3: 2, 4: 3, 5: 0, 6: 1, 7: 2, 8: 3}
    assert [tuple(row["points"]["point"][0]) for row in rows] == [corners_of_red[at[n]] for n in ORIENTATIONS]


@pytest.mark.parametrize(("frame", "told"), [(None, "oriented"), ("oriented", "oriented"), ("stored", "stored")])
def test_rows_tell_the_frame_that_they_are_in(out: Path, frame: str | None, told: str) -> None:
    export(out, "jsonl", frame=frame)
    for line in Path("made").read_text().splitlines():
        row = json.loads(line)
        pixels = (ignoring if told == "stored" else applying)(Path("photos", row["row_id"]))
        box = row["things"]["objects"][0]
        assert row["image"]["frame"] == told
        assert (row["image"]["height"], row["image"]["width"]) == pixels.shape[:2]
        assert tuple(box[f"{name}_px"] for name in ("x_min", "y_min", "x_max", "y_max")) == red_of(pixels)
