"""Every mode to RGB: against closed forms, never against our own earlier output."""

import io

import numpy as np
import pytest
from PIL import Image

from photon.errors import UsageError
from photon.images.decode import DecodePolicy, decode

from .pictures import encode, pixels

POLICY = DecodePolicy()


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM"])
def test_plain_rgb_is_pillows_own(format):
    data = encode(Image.fromarray(noise(23, 31, 3)), format)
    assert np.array_equal(pixels(data), np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
    assert decode(data, POLICY)[1].mode == "RGB"


def test_one_bit():
    bits = noise(9, 17) > 127
    assert np.array_equal(pixels(encode(Image.fromarray(bits))), np.repeat(bits[..., None] * 255, 3, axis=2))


def test_grey():
    grey = noise(9, 17)
    rgb, info = decode(encode(Image.fromarray(grey)), POLICY)
    assert info.mode == "L"
    assert np.array_equal(np.asarray(rgb), np.repeat(grey[..., None], 3, axis=2))


def test_palette():
    index = noise(9, 17)
    table = noise(256, 3)
    picture = Image.fromarray(index, "P")
    picture.putpalette(table.tobytes())
    assert np.array_equal(pixels(encode(picture)), table[index])


@pytest.mark.parametrize("transparency", [7, bytes([255, 0, 128])])
def test_palette_with_transparency(transparency):
    index = np.tile(np.arange(10, dtype=np.uint8), (4, 1))
    table = noise(256, 3)
    picture = Image.fromarray(index, "P")
    picture.putpalette(table.tobytes())
    alpha = np.full(256, 255.0)
    if isinstance(transparency, int):
        alpha[transparency] = 0
    else:
        alpha[:3] = list(transparency)
    want = np.rint((table * alpha[:, None] + 255 * (255 - alpha[:, None])) / 255)[index]
    assert np.array_equal(pixels(encode(picture, transparency=transparency)), want)


@pytest.mark.parametrize(("background", "colour"), [("white", (255, 255, 255)), ("#102030", (16, 32, 48))])
def test_alpha_is_composited(background, colour):
    rgba = noise(16, 16, 4)
    rgba[0, 0] = (200, 10, 10, 0)  # a colour hidden under full transparency
    got = pixels(encode(Image.fromarray(rgba)), DecodePolicy(alpha_background=background))
    alpha = rgba[..., 3:].astype(float)
    assert np.array_equal(got, np.rint((rgba[..., :3] * alpha + np.array(colour) * (255 - alpha)) / 255))
    assert tuple(got[0, 0]) == colour


def test_grey_with_alpha():
    la = noise(16, 16, 2)
    alpha = la[..., 1].astype(float)
    want = np.rint((la[..., 0] * alpha + 255 * (255 - alpha)) / 255)
    assert np.array_equal(pixels(encode(Image.fromarray(la, "LA"))), np.repeat(want[..., None], 3, axis=2))


def test_premultiplied_and_palette_with_alpha():
    half = Image.new("RGBA", (2, 2), (255, 0, 0, 128))
    assert tuple(pixels(half)[0, 0]) == (255, 127, 127)
    assert tuple(pixels(half.convert("RGBa"))[0, 0]) == (255, 127, 127)
    assert tuple(pixels(half.convert("PA"))[0, 0]) == (255, 127, 127)
    assert tuple(pixels(Image.new("LA", (2, 2), (100, 0)).convert("La"))[0, 0]) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_one_transparent_colour(mode):
    """PNGs without an alpha channel can name one colour as transparent."""
    picture = Image.new("RGB", (4, 1), (255, 255, 255)).convert(mode)
    picture.putpixel((0, 0), 0 if mode != "RGB" else (0, 0, 0))
    data = encode(picture, transparency=0 if mode != "RGB" else (0, 0, 0))
    got = pixels(data, DecodePolicy(alpha_background="red"))
    assert got[0].tolist() == [[255, 0, 0], [255, 255, 255], [255, 255, 255], [255, 255, 255]]


def test_cmyk_jpeg_is_read_as_adobe_writes_it():
    """Pillow writes CMYK JPEGs inverted with an Adobe marker, and 4-colour primaries survive the way."""
    inks = {(0, 0, 0, 0): (255, 255, 255), (0, 0, 0, 255): (0, 0, 0), (255, 0, 0, 0): (0, 255, 255)}
    for ink, colour in inks.items():
        data = encode(Image.new("CMYK", (16, 16), ink), "JPEG", quality=100)
        rgb, info = decode(data, POLICY)
        assert info.mode == "CMYK"
        assert np.abs(np.asarray(rgb).astype(int) - colour).max() <= 2


def test_cmyk_jpeg_without_adobes_marker_is_not_inverted():
    """Pillow inverts them all, but nothing says that these are."""
    inks = {(0, 0, 0, 0): (255, 255, 255), (0, 0, 0, 255): (0, 0, 0), (255, 0, 0, 0): (0, 255, 255)}
    for ink, colour in inks.items():
        inverted = tuple(255 - value for value in ink)  # what Pillow will write as ``ink``
        data = encode(Image.new("CMYK", (16, 16), inverted), "JPEG", quality=100)
        at = data.index(b"\xff\xee\x00\x0eAdobe")
        plain = data[:at] + data[at + 16 :]
        assert np.abs(pixels(plain).astype(int) - colour).max() <= 2


def test_ycck_jpeg():
    """What Photoshop writes: the three colours as luma and chroma, black apart, all inverted."""
    inks = np.array([200, 30, 40])
    luma = Image.new("RGB", (16, 16), tuple(inks)).convert("YCbCr").getpixel((0, 0))
    data = encode(Image.new("CMYK", (16, 16), (*(255 - value for value in luma), 0)), "JPEG", quality=100)
    at = data.index(b"Adobe") + 11
    assert data[at] == 0
    got = pixels(data[:at] + b"\2" + data[at + 1 :])
    assert np.abs(got.astype(int) - (255 - inks)).max() <= 3


def test_cmyk_tiff():
    got = pixels(encode(Image.new("CMYK", (4, 4), (255, 0, 0, 51)), "TIFF"))
    assert got.reshape(-1, 3).tolist() == [[0, 204, 204]] * 16


def test_ycbcr_and_lab():
    red = Image.new("RGB", (8, 8), (200, 30, 40))
    for mode in ("YCbCr", "LAB", "HSV"):
        picture = red.convert(mode)
        assert decode(picture, POLICY)[1].mode == mode
        assert np.abs(pixels(picture).astype(int) - (200, 30, 40)).max() <= 3
    assert np.abs(pixels(encode(red.convert("LAB"), "TIFF")).astype(int) - (200, 30, 40)).max() <= 3
    assert np.abs(pixels(encode(red.convert("YCbCr"), "TIFF")).astype(int) - (200, 30, 40)).max() <= 3


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_first_frame_of_an_animation(format):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encode(frames[0], format, save_all=True, append_images=frames[1:], **options)
    rgb, info = decode(data, POLICY)
    assert info.n_frames == 3
    assert np.asarray(rgb).reshape(-1, 3).tolist() == [[255, 0, 0]] * 64


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha_background": "whit"},
        {"alpha_background": "#11223344"},
        {"exif": "transpose"},
        {"scale_16bit": "auto"},
        {"max_pixels": 0},
    ],
)
def test_a_wrong_policy_is_a_usage_error(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        DecodePolicy(**wrong)


def test_the_callers_picture_is_left_alone():
    picture = Image.fromarray(noise(4, 4), "P")
    picture.putpalette(noise(256, 3).tobytes())
    picture.info["transparency"] = 3
    before = (picture.tobytes(), picture.getpalette(), picture.palette.mode, dict(picture.info))
    decode(picture, POLICY)
    assert (picture.tobytes(), picture.getpalette(), picture.palette.mode, dict(picture.info)) == before
    plain = Image.fromarray(noise(4, 4, 3))
    rgb, _ = decode(plain, POLICY)
    rgb.putpixel((0, 0), (1, 2, 3))
    assert np.array_equal(np.asarray(plain), noise(4, 4, 3))
