"""What people made of an export: a COCO or a Label Studio file, read into one form. Held in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from photon.errors import InputError, UsageError
from photon.export.frame import FRAMES, Corners, Frame


@dataclass(frozen=True, slots=True)
class ReviewedBox:
    """``corners`` in [0, 1] of the picture as it was reviewed. ``task``: None where the file does not say."""

    task: str | None
    label: str
    corners: Corners


@dataclass(frozen=True, slots=True)
class ReviewedPicture:
    """``row_id`` is ours, where the file still holds it; ``name`` is the picture's. ``size`` and ``frame`` are those
    that it was reviewed in, as far as the file says. ``texts`` by task."""

    row_id: str | None
    name: str
    size: tuple[int, int] | None
    frame: Frame | None
    boxes: tuple[ReviewedBox, ...]
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Review:
    """``tasks`` and ``classes``: what the export was limited to, empty where the file does not say. ``has_texts``:
    whether answers in words are in it too. ``open`` pictures were not reviewed; ``points`` were, and are no truth."""

    where: str
    pictures: tuple[ReviewedPicture, ...]
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    has_texts: bool
    open: int = 0
    points: int = 0


def read_review(path: Path) -> Review:
    """Raises ``InputError`` for a file that cannot be read, ``UsageError`` for one that is neither form."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; give the JSON that was exported after the review") from error
    try:
        if isinstance(data, dict) and {"images", "annotations", "categories"} <= data.keys():
            return _coco(data, str(path))
        if isinstance(data, list) and all(isinstance(task, dict) and "data" in task for task in data):
            return _label_studio(data, str(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} is not as COCO or Label Studio write it ({error!r}); export it again") from error
    raise UsageError(f"{path} is neither COCO (an object with images) nor Label Studio's JSON (a list of tasks)")


def _coco(data: Mapping[str, Any], where: str) -> Review:
    labels = {category["id"]: str(category["name"]) for category in data["categories"]}
    images = {image["id"]: image for image in data["images"]}
    if len(images) < len(data["images"]):
        raise UsageError(f"{where}: two images have one id; export the review again")
    boxes: dict[Any, list[ReviewedBox]] = {number: [] for number in images}
    for found in data["annotations"]:
        image = images.get(found["image_id"])
        if image is None:
            raise UsageError(
                f"{where}: annotation {found.get('id')} is of image {found['image_id']}, which is not there"
            )
        x, y, width, height = map(float, found["bbox"])
        across, down = image["width"], image["height"]
        corners = (x / across, y / down, (x + width) / across, (y + height) / down)
        task = found.get("task") or (found.get("attributes") or {}).get("task")
        boxes[image["id"]].append(ReviewedBox(task, labels[found["category_id"]], corners))
    pictures = tuple(
        ReviewedPicture(
            image.get("row_id"),
            str(image["file_name"]),
            (int(image["width"]), int(image["height"])),
            _frame(image.get("frame")),
            tuple(boxes[number]),
        )
        for number, image in images.items()
    )
    about = (data.get("info") or {}).get("photon_batch") or {}
    return Review(where, pictures, tuple(about.get("tasks", ())), tuple(about.get("classes", ())), False)


def _label_studio(data: Sequence[Mapping[str, Any]], where: str) -> Review:
    pictures, unseen, points = [], 0, 0
    tasks, classes = dict[str, None](), dict[str, None]()
    for task in data:
        about = task["data"].get("photon_batch") or {}
        tasks.update(dict.fromkeys(about.get("tasks", ())))
        classes.update(dict.fromkeys(about.get("classes", ())))
        done = [given for given in task.get("annotations") or () if not given.get("was_cancelled")]
        if len(done) > 1:
            raise UsageError(f"{where}: task {task.get('id')} has {len(done)} annotations; keep the one that is right")
        if not done:
            unseen += 1
            continue
        result = done[0]["result"]
        points += sum(region["type"] == "keypointlabels" for region in result)
        pictures.append(_picture(task, result, where))
    return Review(where, tuple(pictures), tuple(tasks), tuple(classes), True, unseen, points)


def _picture(task: Mapping[str, Any], result: Sequence[Mapping[str, Any]], where: str) -> ReviewedPicture:
    data = task["data"]
    if data.get("row_id") is None:
        raise UsageError(f"{where}: task {task.get('id')} has no row_id in its data; review what export wrote")
    sizes = {(region["original_width"], region["original_height"]) for region in result if "original_width" in region}
    texts = {
        region["from_name"]: "\n".join(region["value"]["text"]) for region in result if region["type"] == "textarea"
    }
    boxes = tuple(_rectangles(result, f"{where}: task {task.get('id')}"))
    size = next(iter(sizes)) if len(sizes) == 1 else None
    # Its pages show pictures turned, whatever the export said.
    frame = _frame(data.get("frame")) or "oriented"
    return ReviewedPicture(str(data["row_id"]), str(data.get("image")), size, frame, boxes, texts)


def _rectangles(result: Sequence[Mapping[str, Any]], where: str) -> Iterator[ReviewedBox]:
    for region in result:
        if region["type"] != "rectanglelabels":
            continue
        value = region["value"]
        if value.get("rotation") or region.get("image_rotation"):
            raise UsageError(f"{where} has a rectangle or a picture that is rotated; draw it along the picture's sides")
        x, y, width, height = (value[name] / 100 for name in ("x", "y", "width", "height"))
        for label in value["rectanglelabels"]:
            yield ReviewedBox(region["from_name"], label, (x, y, x + width, y + height))


def _frame(name: Any) -> Frame | None:
    return cast(Frame, name) if name in FRAMES else None
