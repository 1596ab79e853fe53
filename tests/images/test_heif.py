"""HEIC by the extra, and the failure that names it where it is not installed. AVIF is Pillow's own."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode, probe

from .pictures import encode

POLICY = DecodePolicy()
#: The start of an iPhone's file, and one whose brand is AVIF's, too.
STARTS = [b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic"]
COLOURS = np.array([[[250, 10, 10], [10, 250, 10]], [[10, 10, 250], [250, 250, 250]]], np.uint8)


def blocks() -> Image.Image:
    """Four colours, 32 x 48 pixels each."""
    return Image.fromarray(COLOURS.repeat(48, 0).repeat(32, 1))


def heic(picture: Image.Image, **options: object) -> bytes:
    heif = pytest.importorskip("pillow_heif", reason="the extra heif is not installed")
    file = io.BytesIO()
    heif.from_pillow(picture).save(file, quality=90, **options)
    return file.getvalue()


def centres(rgb: Image.Image) -> np.ndarray:
    """The colours in the middle of the four quarters."""
    rows, columns = (np.array([1, 3]) * side // 4 for side in (rgb.height, rgb.width))
    return np.asarray(rgb)[np.ix_(rows, columns)].astype(int)


@pytest.mark.parametrize("start", STARTS)
def test_without_the_extra_the_failure_names_it(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    for read in (decode, probe):
        with pytest.raises(ImageError, match=r"pip install 'photon-batch\[heif\]'") as caught:
            read(start, POLICY)
        assert caught.value.code == "IMAGE_UNIDENTIFIED"


def test_other_files_of_the_family_do_not_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ImageError, match="not a picture in any format"):
        decode(b"\0\0\0\x18ftypisom\0\0\0\0mp42isom", POLICY)
    avif = encode(blocks(), "AVIF")
    assert np.abs(centres(decode(avif, POLICY)[0]) - COLOURS).max() <= 12


def test_heic() -> None:
    data = heic(blocks())
    assert data[8:12] == b"heic"
    assert probe(data, POLICY) == (64, 96)
    rgb, info = decode(data, POLICY)
    assert (info.width, info.height, info.mode, info.n_frames) == (64, 96, "RGB", 1)
    assert (info.frame, info.exif_orientation) == ("oriented", 1)
    assert np.abs(centres(rgb) - COLOURS).max() <= 12
    assert "HEIF" not in Image.OPEN, "nothing is registered for the whole process"


def test_what_turns_a_heic_is_its_container() -> None:
    """pillow-heif writes orientation 6 as the container's own rotation; it holds whatever becomes of EXIF."""
    exif = Image.Exif()
    exif[0x0112] = 6
    data = heic(blocks(), exif=exif.tobytes())
    for policy in (POLICY, DecodePolicy(exif="ignore")):
        rgb, info = decode(data, policy)
        assert (info.width, info.height, info.exif_orientation) == (96, 64, 1)
        assert np.abs(centres(rgb) - np.rot90(COLOURS, -1)).max() <= 12


def test_heic_with_alpha_and_broken_ones() -> None:
    clear = blocks().convert("RGBA")
    clear.putalpha(0)
    assert (np.asarray(decode(heic(clear), POLICY)[0]) == 255).all()
    data = heic(blocks())
    for source, policy, code in (
        (data[: len(data) // 2], POLICY, "IMAGE_TRUNCATED"),
        (data[:200], POLICY, "IMAGE_TRUNCATED"),
        (data, DecodePolicy(max_pixels=64 * 96 - 1), "IMAGE_TOO_LARGE"),
    ):
        with pytest.raises(ImageError) as caught:
            decode(source, policy)
        assert caught.value.code == code
