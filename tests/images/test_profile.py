"""Names of ICC profiles: of both versions, and of broken ones."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image, ImageCms

from photon.images.decode import DecodePolicy, decode
from photon.images.profile import profile_name

from .pictures import encode


def profile(tag: bytes) -> bytes:
    """A profile with one tag, its description."""
    return bytes(128) + struct.pack(">I", 1) + b"desc" + struct.pack(">II", 144, len(tag)) + tag


def version_2(name: bytes) -> bytes:
    return profile(b"desc" + bytes(4) + struct.pack(">I", len(name) + 1) + name + bytes(80))


def version_4(name: str) -> bytes:
    text = name.encode("utf-16-be")
    return profile(b"mluc" + bytes(4) + struct.pack(">II4sII", 1, 12, b"enUS", len(text), 28) + text)


def name_of(profile: bytes | None, format: str = "JPEG") -> str | None:
    options = {} if profile is None else {"icc_profile": profile}
    return profile_name(Image.open(io.BytesIO(encode(Image.new("RGB", (4, 4)), format, **options))))


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_names(format: str) -> None:
    if format != "AVIF":  # its encoder looks into the profile, and takes no made-up one
        assert name_of(version_2(b"Adobe RGB (1998)"), format) == "Adobe RGB (1998)"
        assert name_of(version_4("Display P3"), format) == "Display P3"
    assert name_of(None, format) is None
    real = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    assert name_of(real.tobytes(), format) == ImageCms.getProfileDescription(real).strip() == "sRGB built-in"


def test_the_profile_is_noted_and_not_applied() -> None:
    picture = Image.new("RGB", (4, 4), (200, 100, 50))
    rgb, info = decode(encode(picture, icc_profile=version_4("Display P3")), DecodePolicy())
    assert (info.icc_profile, rgb.getpixel((0, 0))) == ("Display P3", (200, 100, 50))
    assert decode(encode(picture), DecodePolicy())[1].icc_profile is None


@pytest.mark.parametrize(
    "broken",
    [
        b"x",
        bytes(200),
        version_2(b"Adobe")[:146],
        version_4("P3")[:150],
        version_4("P3")[:172],
        profile(b"text" + bytes(40)),
        bytes(128) + b"\xff" * 40,
    ],
)
def test_broken_profiles_have_no_name(broken: bytes) -> None:
    assert name_of(broken) == ""


def test_long_and_odd_names_are_cut() -> None:
    assert name_of(version_2(b"a" * 300)) == "a" * 100
    assert name_of(version_4("Mitä\n\u202e vielä")) == "Mitä vielä"
