"""Pictures of every kind through a whole job: the codes of the broken ones, frames, and pixels by their digests.

The digests are those of 8-bit RGB, row by row. What they stand for is proved in ``tests/images``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
from PIL import Image

from photon.images.decode import DecodePolicy, decode
from photon.job.run import run
from photon.job.summary import Summary
from photon.manifest.load import load_manifest
from photon.models import resample
from tests.images.pictures import black_png, encode, jpeg_that_says
from tests.job.inputs import write_parquet
from tests.program import COMMAND

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat, dog]}, {name: cap, type: caption}]"
RED, GREEN, BLUE = (230, 20, 20), (20, 210, 20), (30, 30, 220)


def photo(width: int, height: int, orientation: object = None, corner: tuple[int, int, int] = RED) -> bytes:
    """A blue JPEG whose top left quarter, as stored, is of another colour."""
    picture = Image.new("RGB", (width, height), BLUE)
    picture.paste(corner, (0, 0, width // 2, height // 2))
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    return encode(picture, "JPEG", exif=exif, quality=90)


def ramp() -> bytes:
    return encode(Image.fromarray(np.arange(65536, dtype=np.uint16).reshape(256, 256)))


def cmyk() -> bytes:
    """As Adobe writes it: inverted, with a marker."""
    return encode(Image.new("CMYK", (16, 16), (255, 0, 0, 0)), "JPEG", quality=100)


def palette() -> bytes:
    """Red, green and blue, green transparent."""
    picture = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4) % 3, "P")
    picture.putpalette([*RED, *GREEN, *BLUE])
    return encode(picture, transparency=1)


def hidden() -> bytes:
    """Fully transparent, with a colour that must not come to light, beside half and full red."""
    return encode(Image.fromarray(np.array([[[200, 10, 10, 0], [255, 0, 0, 128], [255, 0, 0, 255]]], np.uint8)))


def animation() -> bytes:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN, BLUE)]
    return encode(frames[0], "GIF", save_all=True, append_images=frames[1:])


#: File, mode, frames, and the digest of its pixels: the grey ramp over 257; cyan; white where green is transparent;
#: white, half and full red; the first frame's red.
KINDS = {
    "16-bit": (ramp, "I;16", 1, "ff972ca078809fc54fb6af18b581bc19a7744814ad32ab29fefad1c55c4637d6"),
    "CMYK": (cmyk, "CMYK", 1, "97da155e4fbc4681ce228e4d64913d352f2fb15b5984f97769f023a3679ac0a9"),
    "palette": (palette, "P", 1, "1b66fa1d1687b1885f191546282a24745a977cdef4450eadabedbd2e6616e53e"),
    "hidden": (hidden, "RGBA", 1, "0961038a2692d20077dc9ab64980704b699ef30a091ff24827d4f20ae0ed700f"),
    "animation": (animation, "P", 3, "5e89aaac84b1395e7833d4767ae28dcb9d606037466ae4c989608e64d07187ee"),
}


def rows_of() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset("out/data", format="ipc").to_table().to_pylist()
    return found


def run_on(manifest_file: Write, images: list[bytes | None], **parts: str) -> Summary:
    write_parquet(Path("rows.parquet"), images)
    return run(load_manifest(manifest_file(**{"tasks": TASKS, **parts})), fresh=True)


def test_broken_rows_have_their_codes(manifest_file: Write, caplog: pytest.LogCaptureFixture) -> None:
    whole = photo(200, 160)
    images = [whole] * 8 + [whole[: len(whole) // 2], b"garbage " * 9, b"", None]
    with caplog.at_level(logging.WARNING, logger="photon.job"):
        summary = run_on(manifest_file, images, errors="{max_failure_rate: 0.5}")
    rows = rows_of()
    assert [row["row_id"] for row in rows] == [f"row{n}" for n in range(12)]
    assert [row["status"] for row in rows] == ["ok"] * 8 + ["failed"] * 4
    codes = ["IMAGE_TRUNCATED", "IMAGE_UNIDENTIFIED", "IMAGE_EMPTY", "IMAGE_MISSING"]
    assert [row["error_code"] for row in rows[8:]] == codes
    for row in rows[8:]:
        assert row["image"] is None
        assert row["error_message"]
        assert (row["things"]["status"], row["things"]["objects"]) == ("skipped", None)
        assert (row["cap"]["status"], row["cap"]["text"]) == ("skipped", None)
    assert (summary.rows, summary.failed, summary.exit_code) == (12, 4, 0)
    told = [record.getMessage() for record in caplog.records]
    assert [sum(code in message for message in told) for code in codes] == [1] * 4


@pytest.mark.parametrize(("rate", "code"), [(0.5, 0), (0.01, 3)])
def test_five_bad_of_twelve(manifest_file: Write, rate: float, code: int) -> None:
    """The verdict is the command's own exit code."""
    whole = photo(200, 160)
    images = [whole] * 7 + [black_png(20_000, 20_000), whole[:-700], b"garbage", b"", None]
    write_parquet(Path("rows.parquet"), images)
    path = manifest_file(tasks=TASKS, errors=f"{{max_failure_rate: {rate}}}")
    command = [*COMMAND, "run", str(path), "--fresh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert json.loads(Path("out/run.json").read_text())["counts"]["codes"] == {
        "IMAGE_TOO_LARGE": 1,
        "IMAGE_TRUNCATED": 1,
        "IMAGE_UNIDENTIFIED": 1,
        "IMAGE_EMPTY": 1,
        "IMAGE_MISSING": 1,
    }


def test_the_frame_is_recorded(manifest_file: Write) -> None:
    """A phone's photo that is to be turned a quarter, one whose orientation is none, and one with broken EXIF."""
    broken = encode(Image.new("RGB", (60, 40)), "JPEG", exif=b"Exif\0\0garbage!garbage")
    images = [photo(4000, 3000, orientation=6), photo(60, 40, orientation=9), broken]

    def told(**parts: str) -> list[tuple[object, ...]]:
        summary = run_on(manifest_file, images, **parts)
        assert (summary.failed, summary.odd_orientations) == (0, 2)
        assert "2 pictures with an EXIF orientation that is none, taken as stored" in summary.text()
        return [
            tuple(row["image"][key] for key in ("width", "height", "frame", "exif_orientation")) for row in rows_of()
        ]

    def how() -> str:
        kind: str = json.loads(Path("out/run.json").read_text())["manifest"]["image"]["exif"]
        return kind

    small = [(60, 40, "oriented", 1)] * 2
    assert told() == [(3000, 4000, "oriented", 6), *small]
    assert how() == "apply"
    assert told(image="{exif: ignore}") == [(4000, 3000, "stored", 6), *[(60, 40, "stored", 1)] * 2]
    assert how() == "ignore"


@pytest.mark.parametrize("orientation", [1, 6])
def test_the_model_sees_the_recorded_frame(orientation: int) -> None:
    """The corner that is stored at the top left is seen at the top right once a photo with orientation 6 is turned."""
    rgb, info = decode(photo(400, 300, orientation), DecodePolicy())
    assert rgb.size == (info.width, info.height) == ((400, 300) if orientation == 1 else (300, 400))
    at_left = np.asarray(rgb)[20, 20]
    at_right = np.asarray(rgb)[20, -20]
    red, blue = (at_left, at_right) if orientation == 1 else (at_right, at_left)
    assert np.abs(red.astype(int) - RED).max() <= 4
    assert np.abs(blue.astype(int) - BLUE).max() <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_by_their_digest(kind: str) -> None:
    make, mode, frames, digest = KINDS[kind]
    rgb, info = decode(make(), DecodePolicy())
    assert (info.mode, info.n_frames) == (mode, frames)
    assert hashlib.sha256(rgb.tobytes()).hexdigest() == digest


def test_kinds_of_pictures_in_a_job(manifest_file: Write) -> None:
    files = [make() for make, *_ in KINDS.values()]
    assert run_on(manifest_file, list(files)).failed == 0
    for (_, mode, frames, _), data, row in zip(KINDS.values(), files, rows_of(), strict=True):
        assert (row["image"]["mode"], row["image"]["n_frames"]) == (mode, frames)
        assert row["image"]["sha256"] == hashlib.sha256(data).hexdigest()


def test_too_large_pictures_are_rows_that_failed(manifest_file: Write) -> None:
    """That they take no memory is measured in ``tests/images``."""
    images = [black_png(20_000, 20_000), jpeg_that_says((20_001, 20_001)), photo(60, 40)]
    limit = Image.MAX_IMAGE_PIXELS
    summary = run_on(manifest_file, images, errors="{max_failure_rate: 1.0}")
    assert [row["error_code"] for row in rows_of()] == ["IMAGE_TOO_LARGE", "IMAGE_TOO_LARGE", None]
    assert "20001 x 20001 = 400040001 pixels, more than image.max_pixels = 180000000" in rows_of()[1]["error_message"]
    assert summary.failed == 2
    assert limit == Image.MAX_IMAGE_PIXELS


def test_fast_decoding_in_a_job(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows tell of the whole picture; the crops are cut by the other resampler, from a smaller one."""
    sizes: list[tuple[int, int]] = []

    def watched(picture: Image.Image) -> resample.Resampler:
        sizes.append(picture.size)
        return fast(picture)

    fast = resample.fast
    monkeypatch.setattr(resample, "fast", watched)
    tasks = "[{name: spots, type: point, objects: [cat], max_objects: 1}]"
    parts = {"model": "{path: photon://tiny}", "tasks": tasks, "image": "{decode: fast}"}
    assert run_on(manifest_file, [photo(4000, 3000, orientation=6)], **parts).ok == 1
    info = rows_of()[0]["image"]
    assert (info["width"], info["height"], info["exif_orientation"]) == (3000, 4000, 6)
    assert sizes == [(1500, 2000)]
