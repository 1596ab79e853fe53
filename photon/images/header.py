"""From encoded bytes to an opened picture of known size, before any pixel is decoded; and why one cannot be read.

``Image.open`` warns or fails by a global pixel limit; ours comes with the policy, so its search for the format is done
here, in the same order and with the same rules.
"""

from __future__ import annotations

import struct
import threading
from typing import BinaryIO

from PIL import Image, ImageFile

from photon.errors import ImageError
from photon.images.heif import is_heif, open_heif
from photon.images.truncation import ends_early

# EPS runs Ghostscript on the input; the icons decode pixels before they tell their size.
_REFUSED = frozenset({"EPS", "ICO", "ICNS"})
_registering = threading.Lock()


def open_header(file: BinaryIO, max_pixels: int) -> ImageFile.ImageFile:
    """Identify the format and read the header. Raises ``ImageError`` IMAGE_UNIDENTIFIED or IMAGE_TOO_LARGE, and
    whatever a decoder raises on a broken header."""
    with _registering:
        Image.preinit()
        Image.init()
    prefix = file.read(16)
    cut: Exception | None = None
    for name in tuple(Image.ID):
        factory, accept = Image.OPEN[name]
        try:
            verdict = accept is None or accept(prefix)
            if not verdict or isinstance(verdict, str):  # a string says that the codec is not built in
                continue
            if name in _REFUSED:
                raise ImageError("IMAGE_UNIDENTIFIED", f"{name} files are not read")
            file.seek(0)
            picture = factory(file, "")
        except (SyntaxError, IndexError, TypeError, struct.error) as error:  # Pillow's way to say "not mine"
            cut = cut or error
            continue
        check_size(picture.size, max_pixels)
        return picture
    if is_heif(prefix):
        file.seek(0)
        picture = open_heif(file)
        check_size(picture.size, max_pixels)
        return picture
    raise ImageError("IMAGE_UNIDENTIFIED", "not a picture in any format that is known here") from cut


def check_size(size: tuple[int, int], max_pixels: int) -> None:
    """Raise ``ImageError`` IMAGE_TOO_LARGE for more than ``max_pixels``."""
    width, height = size
    if width * height > max_pixels:
        pixels = f"{width} x {height} = {width * height} pixels"
        raise ImageError("IMAGE_TOO_LARGE", f"{pixels}, more than image.max_pixels = {max_pixels}")


def failure(error: Exception, data: bytes) -> ImageError:
    """The ``ImageError`` to raise for ``error``, with which reading ``data`` (empty if not at hand) ended."""
    ours = error if isinstance(error, ImageError) else None
    if ours and ours.code != "IMAGE_UNIDENTIFIED":
        return ours
    if isinstance(error, Image.DecompressionBombError):  # some plugins ask Pillow's own limit, whatever ours is
        return ImageError("IMAGE_TOO_LARGE", f"beyond Pillow's own limit for this format: {error}")
    # Many decoders do not say that bytes are missing, but most files do.
    if ends_early(data) or (not ours and "truncated" in str(error).lower()):
        return ImageError("IMAGE_TRUNCATED", f"the file ends too early: {error.__cause__ or error}")
    return ours or ImageError("IMAGE_UNREADABLE", f"{type(error).__name__}: {error}")
