"""Whether bytes are missing from an encoded picture, by the format's own account of where it ends."""

from __future__ import annotations

from typing import Literal

_JPEG = b"\xff\xd8\xff"
_JPEG_2000 = (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")
_TIFF_SIZES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}  # bytes per value by type; the others have 1


def ends_early(data: bytes) -> bool:
    """Whether a file that failed to decode is cut short. Says why it failed: not meant for files that are whole."""
    tail = data[-64:].rstrip(b"\0")
    if data.startswith((_JPEG, *_JPEG_2000)):
        return not tail.endswith(b"\xff\xd9")
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"IEND" not in tail
    if data.startswith((b"GIF87a", b"GIF89a")):
        return not tail.endswith(b";")
    if data[:4] == b"RIFF" and len(data) >= 8:  # WebP
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    if data[:4] in (b"II*\0", b"MM\0*"):
        return _tiff_directory_end(data) > len(data)
    return data[4:8] == b"ftyp" and _boxes_end(data) > len(data)  # AVIF


def jpeg_lacks_its_end(data: bytes) -> bool:
    """Whether no end marker follows the first scan of a JPEG.

    Pillow notices where a file just stops; but zeros that follow (a download into reserved space) it takes for grey
    pixels.
    """
    if data.endswith(b"\xff\xd9"):
        return False
    at = 2
    while data[at : at + 1] == b"\xff":
        marker = data[at + 1 : at + 2]
        if marker == b"\xda":  # start of scan; in what follows, no data byte looks like a marker
            return data.find(b"\xff\xd9", at) < 0
        if marker == b"\xff":  # padding
            at += 1
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False  # an odd file, which Pillow made sense of


def _tiff_directory_end(data: bytes) -> int:
    """Where the first directory and the values that it points to should end; strips are not looked at."""
    order: Literal["little", "big"] = "little" if data[:1] == b"I" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)

    first = number(4, 4) + 2
    end = first + 12 * number(first - 2, 2) + 4
    for at in range(first, min(end, len(data)) - 4, 12):
        size = _TIFF_SIZES.get(number(at + 2, 2), 1) * number(at + 4, 4)
        if size > 4:
            end = max(end, number(at + 8, 4) + size)
    return end


def _boxes_end(data: bytes) -> int:
    """Where the last top-level box of an ISO file should end."""
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0: to the end of the file; else nonsense
            return len(data)
        at += size
    return at
