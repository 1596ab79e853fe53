"""Damaged pictures, decoded in a process of their own, so that one which ends the process is a failed test.

Run as a script: ``fuzz.py COUNT SEED``. Prints one JSON object: how often each outcome came, the slowest picture in
seconds of this thread's own time, and how far the peak of memory lay above what there was before, in bytes.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import io
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from PIL import Image, ImageDraw

from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode, probe

MOST_PIXELS = 4_000_000
EXACT, FAST = DecodePolicy(max_pixels=MOST_PIXELS), DecodePolicy(max_pixels=MOST_PIXELS, decode="fast")
FORMATS: dict[str, dict[str, object]] = {
    "JPEG": {"quality": 80, "progressive": True},
    "PNG": {},
    "GIF": {},
    "WEBP": {},
    "TIFF": {"compression": "tiff_lzw"},
    "BMP": {},
    "AVIF": {"speed": 10},
    "JPEG2000": {},
    "PPM": {},
}
if importlib.util.find_spec("pillow_heif"):
    FORMATS["HEIF"] = {}
HANGS = 30
"""Seconds by the clock after which a picture ends the process, with a traceback."""


def pictures(dice: random.Random) -> list[tuple[str, bytes]]:
    """Four of each format: modes, sizes and metadata differ."""
    made = []
    for format, options in FORMATS.items():
        for n in range(4):
            size = dice.randrange(1, 90), dice.randrange(1, 90)
            picture = Image.effect_noise(size, 60).convert("RGB")
            ImageDraw.Draw(picture).ellipse((5, 5, 60, 40), fill=(200, 30, 60))
            more: dict[str, object] = {}
            if n == 1:
                picture = picture.convert("L")
            elif n == 2 and format in ("PNG", "WEBP", "TIFF", "AVIF", "GIF", "HEIF"):
                picture = picture.convert("RGBA")
            elif n == 3 and format in ("PNG", "WEBP", "GIF", "TIFF"):
                more = {"save_all": True, "append_images": [picture.rotate(90 * k) for k in (1, 2)]}
            if format in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
                exif = Image.Exif()
                exif[0x0112] = dice.randrange(1, 9)
                more["exif"] = exif
            made.append((format, encoded(picture, format, **options, **more)))
    return made


def encoded(picture: Image.Image, format: str, **options: object) -> bytes:
    file = io.BytesIO()
    if format == "HEIF":
        import pillow_heif

        pillow_heif.from_pillow(picture).save(file)
    else:
        picture.save(file, format, **options)
    return file.getvalue()


def damaged(data: bytes, dice: random.Random) -> bytes:
    """``data`` with one to four injuries: bytes and bits changed, stretches cut out, doubled, zeroed, moved in."""
    hurt = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        # Headers are short, and where the harm is done: every other injury falls there.
        at = dice.randrange(min(len(hurt), 64) if dice.random() < 0.5 else len(hurt)) if hurt else 0
        length = min(dice.choice((1, 2, 4, 16, 64)), len(hurt) - at)
        kind = dice.randrange(8)
        if kind == 0:
            hurt[at : at + 1] = bytes([dice.randrange(256)])
        elif kind == 1 and hurt:
            hurt[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            hurt[at : at + length] = dice.choice((b"\0", b"\xff")) * length
        elif kind == 3:
            del hurt[at : at + length]
        elif kind == 4:
            hurt[at:at] = hurt[at : at + length]
        elif kind == 5:
            hurt[at:at] = dice.randbytes(length)
        elif kind == 6:
            del hurt[at:]
        else:
            value = dice.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
            size = 2 if value <= 0xFFFF else 4
            hurt[at : at + size] = value.to_bytes(size, dice.choice(("little", "big")))
    return bytes(hurt)


def outcome(data: bytes, policy: DecodePolicy) -> str:
    """``decoded``, or the code. Whatever else is raised ends the process, as it would end a run."""
    try:
        probe(data, policy)
        rgb, info = decode(data, policy, lambda height, width: (20, 20))
    except ImageError as error:
        return error.code
    assert rgb.mode == "RGB"
    assert info.width * info.height <= MOST_PIXELS
    if not policy.fast:
        assert rgb.size == (info.width, info.height)
    return "decoded"


def memory(name: str) -> int:
    """Bytes of this process: resident (VmRSS), or the most there were (VmHWM; getrusage counts the parent's in)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def main(count: int, seed: int) -> None:
    dice = random.Random(seed)
    whole = pictures(dice)
    for _, data in whole:
        assert outcome(data, EXACT) == outcome(data, FAST) == "decoded"  # and the plugins are imported
    before = memory("VmRSS")
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for n in range(count):
        format, data = dice.choice(whole)
        hurt = damaged(data, dice)
        faulthandler.dump_traceback_later(HANGS, exit=True)
        start = time.thread_time()
        try:
            outcomes[f"{format} {outcome(hurt, FAST if n % 2 else EXACT)}"] += 1
        except BaseException:
            print(f"number {n} of seed {seed}, {format}: {hurt.hex()}", file=sys.stderr)
            raise
        slowest = max(slowest, time.thread_time() - start)
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"outcomes": outcomes, "slowest": slowest, "grown": memory("VmHWM") - before}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
