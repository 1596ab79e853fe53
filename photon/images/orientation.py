"""EXIF orientation: how a camera was held, 1 to 8, and the transposition that undoes it."""

from __future__ import annotations

from PIL import ExifTags, Image
from PIL.Image import Transpose

_UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
_HEAD = b"Exif\0\0"
_INVERSE = {Transpose.ROTATE_90: Transpose.ROTATE_270, Transpose.ROTATE_270: Transpose.ROTATE_90}


def read_orientation(picture: Image.Image) -> int:
    """The picture's orientation, 1 to 8. 1 where there is none, where it is not one of the eight, or EXIF is broken."""
    return find_orientation(picture)[0]


def find_orientation(picture: Image.Image) -> tuple[int, bool]:
    """``read_orientation``, and whether what stands there is none: broken, or not one of the eight."""
    try:
        exif = picture.getexif()
        value = exif.get(ExifTags.Base.Orientation, 1)
        if not exif and len(picture.info.get("exif", b"")) > len(_HEAD):  # Pillow found nothing to read in it
            return 1, True
    except Exception:  # broken EXIF fails in a dozen ways, and never costs a picture
        return 1, True
    return (value, False) if isinstance(value, int) and 1 <= value <= 8 else (1, True)


def upright(picture: Image.Image, orientation: int) -> Image.Image:
    """The stored picture turned as it is meant to be seen."""
    method = _UPRIGHT.get(orientation)
    return picture if method is None else picture.transpose(method)


def swaps_sides(orientation: int) -> bool:
    """Whether width and height change places when the picture is turned upright."""
    return orientation >= 5


def as_stored(picture: Image.Image, orientation: int) -> Image.Image:
    """The inverse of ``upright``."""
    method = _UPRIGHT.get(orientation)
    return picture if method is None else picture.transpose(_INVERSE.get(method, method))
