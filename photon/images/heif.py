"""HEIC and HEIF, which Pillow does not read, through pillow-heif: the extra ``heif``. AVIF is Pillow's own.

Whatever turns a HEIF picture is in the container, and every reader applies it: its EXIF orientation counts as 1.
"""

from __future__ import annotations

from typing import BinaryIO

from PIL import ImageFile

from photon.errors import ImageError

_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})


def is_heif(prefix: bytes) -> bool:
    """Whether a file that starts with these 16 bytes says that it is one. Some of the brands are AVIF's, too."""
    return prefix[4:8] == b"ftyp" and prefix[8:12] in _BRANDS


def open_heif(file: BinaryIO) -> ImageFile.ImageFile:
    """Raises ``ImageError`` IMAGE_UNIDENTIFIED without the extra, and what pillow-heif raises on a broken header."""
    try:
        from pillow_heif import HeifImageFile
    except ImportError as error:
        remedy = "to read HEIC and HEIF files: pip install 'photon-batch[heif]'"
        raise ImageError("IMAGE_UNIDENTIFIED", remedy) from error
    # Not registered with Pillow: that would change what the whole process reads.
    picture: ImageFile.ImageFile = HeifImageFile(file, "")
    return picture
