"""Bytes, a path or a PIL picture to RGB, with what was found out on the way. Thread safe.

The header comes first: a picture of too many pixels is refused before any is decoded. ICC profiles are not applied.
HEIC is read with the extra ``heif``.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import io
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Literal

from PIL import Image, ImageColor, TiffImagePlugin

from photon.core import ImageInfo
from photon.errors import ImageError, UsageError
from photon.images.draft import Canvas, shrink
from photon.images.header import check_size, failure, open_header
from photon.images.modes import Scale, to_rgb
from photon.images.orientation import as_stored, find_orientation, read_orientation, swaps_sides, upright
from photon.images.profile import profile_name
from photon.images.quiet import quiet
from photon.images.truncation import jpeg_lacks_its_end

# PIL pictures are loaded in place, and two threads may hold the same one.
_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class DecodePolicy:
    """How pictures become RGB: the ``image`` section of a manifest.

    ``alpha_background`` is any PIL colour name or #rrggbb. ``scale_16bit``: "full_range" takes 65535 as white (÷ 257),
    "min_max" stretches each picture's own range. ``decode``: "exact" gives the reference's pixels; "fast" those of
    scaled JPEG decoding and of a faster resampler (docs/pixels.md). Raises ``UsageError`` on a wrong value, and for
    "fast" where torch is too old for it.
    """

    exif: Literal["apply", "ignore"] = "apply"
    alpha_background: str = "white"
    max_pixels: int = 180_000_000
    scale_16bit: Scale = "full_range"
    decode: Literal["exact", "fast"] = "exact"

    def __post_init__(self) -> None:
        if self.exif not in ("apply", "ignore"):
            raise UsageError(f"image.exif must be apply or ignore, not {self.exif!r}")
        if self.scale_16bit not in ("full_range", "min_max"):
            raise UsageError(f"image.scale_16bit must be full_range or min_max, not {self.scale_16bit!r}")
        if self.max_pixels < 1:
            raise UsageError(f"image.max_pixels must be at least 1, not {self.max_pixels}")
        if self.decode not in ("exact", "fast"):
            raise UsageError(f"image.decode must be exact or fast, not {self.decode!r}")
        if self.fast and not _torch_resamples():
            remedy = "pip install 'photon-batch[fast]', or write exact"
            raise UsageError(f"image.decode: fast needs torch 2.12 or newer: {remedy}")
        _ = self.background

    @property
    def fast(self) -> bool:
        return self.decode == "fast"

    @property
    def background(self) -> tuple[int, int, int]:
        """``alpha_background`` as 8-bit red, green, blue."""
        wrong = UsageError(f"image.alpha_background must be a colour like white or #fff, not {self.alpha_background!r}")
        try:
            colour = ImageColor.getrgb(self.alpha_background)
        except ValueError:
            raise wrong from None
        if len(colour) != 3:  # it has an alpha of its own
            raise wrong
        return colour


def decode(source: object, policy: DecodePolicy, canvas: Canvas | None = None) -> tuple[Image.Image, ImageInfo]:
    """The picture in RGB, in the frame that ``info.frame`` names, and what is known of it.

    ``source`` is what ``photon.core.Image.source`` holds: an encoded file's bytes, a path, or a PIL picture. A path is
    read once. Of an animation, the first frame is taken (of a PIL picture, the current one). With ``canvas`` and a
    policy of "fast", a large JPEG's picture is smaller than ``info`` says, which always tells the whole one's size.
    Raises ``ImageError``.
    """
    if isinstance(source, Image.Image):
        with _loading, _reporting(b""):
            check_size(source.size, policy.max_pixels)
            return _finish(source, policy, None, None)
    data = _read(source)
    with _reporting(data):
        picture = open_header(io.BytesIO(data), policy.max_pixels)
        if picture.format in ("JPEG", "MPO") and jpeg_lacks_its_end(data):
            raise ImageError("IMAGE_TRUNCATED", "the file ends too early: no end marker")
        return _finish(picture, policy, hashlib.sha256(data).hexdigest(), canvas if policy.fast else None)


def probe(source: object, policy: DecodePolicy) -> tuple[int, int]:
    """Width and height in pixels by the header alone, before orientation, to reckon with memory before decoding.

    Of a path, only the header is read. Raises ``ImageError`` as ``decode`` would for what a header shows.
    """
    if isinstance(source, Image.Image):
        check_size(source.size, policy.max_pixels)
        return source.size
    data = source if isinstance(source, bytes) else b""
    with _open(source) as file, _reporting(data):
        return open_header(file, policy.max_pixels).size


def decoded_bytes(source: object, policy: DecodePolicy) -> int:
    """Bytes that the picture takes as RGB, by its header; 0 where the header tells nothing, as ``decode`` will."""
    try:
        width, height = probe(source, policy)
    except ImageError:
        return 0
    return 3 * width * height


def _finish(
    picture: Image.Image, policy: DecodePolicy, digest: str | None, canvas: Canvas | None
) -> tuple[Image.Image, ImageInfo]:
    mode, n_frames, profile = picture.mode, _count_frames(picture), profile_name(picture)
    # Pillow turns TIFFs, and no other format, while it loads them, and forgets the orientation. PNGs may have it last.
    turned = isinstance(picture, TiffImagePlugin.TiffImageFile)
    orientation, odd = find_orientation(picture) if turned else (1, False)
    whole = picture.size
    if canvas is not None:
        shrink(picture, canvas, swapped=policy.exif == "apply" and swaps_sides(read_orientation(picture)))
    smaller = picture.size != whole
    picture.load()
    if not turned:
        orientation, odd = find_orientation(picture)
    rgb = to_rgb(picture, policy.background, policy.scale_16bit, ours=digest is not None)
    if policy.exif == "apply":
        rgb = rgb if turned else upright(rgb, orientation)
    elif turned:
        rgb = as_stored(rgb, orientation)
    frame: Literal["oriented", "stored"] = "oriented" if policy.exif == "apply" else "stored"
    size = rgb.size
    if smaller:  # a JPEG: of these, none is turned by Pillow
        size = whole[::-1] if frame == "oriented" and swaps_sides(orientation) else whole
    return rgb, ImageInfo(*size, frame, orientation, mode, n_frames, digest, profile, odd)


def _count_frames(picture: Image.Image) -> int:
    try:
        return max(1, int(getattr(picture, "n_frames", 1)))
    except Exception:  # a later frame is broken: the first, which is all that we use, may still be whole
        return 1


def _torch_resamples() -> bool:
    """Whether the installed torch can resize by LANCZOS, without importing it."""
    try:
        major, minor = importlib.metadata.version("torch").split(".")[:2]
        return (int(major), int(minor)) >= (2, 12)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


@contextmanager
def _reporting(data: bytes) -> Iterator[None]:
    """Whatever a decoder raises becomes an ``ImageError``."""
    try:
        with quiet():
            yield
    except Exception as error:
        raise failure(error, data) from error


def _read(source: object) -> bytes:
    if isinstance(source, bytes):
        data = source
    else:
        with _open(source) as file:
            try:
                data = file.read()
            except OSError as error:
                raise ImageError("IMAGE_UNREADABLE", str(error)) from error
    if not data:
        raise ImageError("IMAGE_EMPTY", "the image has 0 bytes")
    return data


def _open(source: object) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"an image is bytes, a path or a PIL image, not {type(source).__name__}")
    try:
        if not stat.S_ISREG(os.stat(source).st_mode):  # to open a pipe would wait for ever
            raise ImageError("IMAGE_UNREADABLE", f"not a file: {os.fspath(source)!r:.300}")
        return open(source, "rb")
    except OSError as error:
        gone = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
        raise ImageError("IMAGE_MISSING" if gone else "IMAGE_UNREADABLE", f"{error!s:.300}") from error
    except ValueError as error:  # a path with a zero byte
        raise ImageError("IMAGE_MISSING", f"not a path ({error}): {os.fspath(source)!r:.300}") from error
