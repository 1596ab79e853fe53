"""The name of the ICC profile in a picture, so that a collection can be searched for those that are not sRGB.

Profiles are not applied: the reference does not, and a model has seen pictures as they are stored.
"""

from __future__ import annotations

from PIL import Image

_MOST = 100  # characters


def profile_name(picture: Image.Image) -> str | None:
    """The profile's own description, such as "Display P3"; "" if it has none or is broken, None for no profile."""
    profile = picture.info.get("icc_profile")
    if not isinstance(profile, bytes) or not profile:
        return None
    return "".join(c for c in _description(profile) if c.isprintable()).strip()[:_MOST]


def _description(profile: bytes) -> str:
    count = _number(profile, 128)
    for at in range(132, min(132 + 12 * count, len(profile) - 11), 12):
        if profile[at : at + 4] == b"desc":
            start = _number(profile, at + 4)
            return _text(profile[start : start + _number(profile, at + 8)])
    return ""


def _text(tag: bytes) -> str:
    """Of version 2 (ASCII after its length), or of version 4 (the first of several languages)."""
    if tag[:4] == b"desc":
        return tag[12 : 12 + _number(tag, 8)].split(b"\0")[0].decode("ascii", "ignore")
    if tag[:4] == b"mluc" and _number(tag, 8):
        start = _number(tag, 24)
        return tag[start : start + _number(tag, 20)].decode("utf-16-be", "ignore")
    return ""


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")
