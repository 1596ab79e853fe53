"""Sources, broken input, size limits, threads."""

import hashlib
import io
import os
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode, probe
from photon.images.quiet import quiet

from .pictures import SEEN, STORED, black_png, encode, jpeg_that_says, oriented

POLICY = DecodePolicy()


def code_of(source: object, policy: DecodePolicy = POLICY) -> str:
    with pytest.raises(ImageError) as caught:
        decode(source, policy)
    assert caught.value.code.startswith("IMAGE_")
    return caught.value.code


def test_sources(tmp_path):
    data = oriented(6, "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    for source in (data, path, str(path)):
        rgb, info = decode(source, POLICY)
        assert info.sha256 == digest
        assert np.array_equal(np.asarray(rgb)[..., 0], SEEN[6])
        assert probe(source, POLICY) == (3, 2)
    with Image.open(path) as picture:
        assert probe(picture, POLICY) == (3, 2)
        rgb, info = decode(picture, POLICY)
    assert info.sha256 is None
    assert np.array_equal(np.asarray(rgb)[..., 0], SEEN[6])


def test_missing_and_odd_paths(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    missing = [tmp_path / "no.png", "", "https://example.com/a.png", "a\0b", "x" * 5000, tmp_path / "pipe" / "a.png"]
    for source in missing:
        assert code_of(source) == "IMAGE_MISSING"
        with pytest.raises(ImageError):
            probe(source, POLICY)
    assert code_of(tmp_path) == "IMAGE_UNREADABLE"
    assert code_of(tmp_path / "pipe") == "IMAGE_UNREADABLE"  # and does not wait for a writer
    with pytest.raises(TypeError):
        decode(3, POLICY)


def test_empty_and_garbage(tmp_path):
    (tmp_path / "empty").touch()
    assert code_of(b"") == code_of(tmp_path / "empty") == "IMAGE_EMPTY"
    assert code_of(b"garbage") == code_of(b"\0" * 4096) == code_of(b"<html>not found</html>") == "IMAGE_UNIDENTIFIED"
    assert code_of(np.random.default_rng(0).bytes(4096)) == "IMAGE_UNIDENTIFIED"
    assert code_of(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n") == "IMAGE_UNIDENTIFIED"  # runs nothing


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("BMP", {}),
        ("AVIF", {}),
        ("JPEG2000", {}),
    ],
)
def test_truncated(format, options):
    """Wherever a file is cut after its magic: a failure that says so, or (PNG, GIF) all of the pixels."""
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8))
    data = encode(picture, format, **options)
    whole = np.asarray(decode(data, POLICY)[0])
    for cut in (20, 30, 50, 100, 200, len(data) // 4, len(data) // 2, len(data) * 9 // 10, len(data) - 1):
        try:
            rgb, _ = decode(data[:cut], POLICY)
            outcome = "whole" if np.array_equal(np.asarray(rgb), whole) else "part"
        except ImageError as error:
            outcome = error.code
        assert outcome in ("IMAGE_TRUNCATED", "whole"), cut
    assert code_of(data[: len(data) // 2]) == "IMAGE_TRUNCATED"


def test_a_hole_in_a_jpeg_is_truncated():
    """A download that was cut after its space was reserved: the second half is zeros."""
    data = encode(Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)), "JPEG")
    assert code_of(data[: len(data) // 2].ljust(len(data), b"\0")) == "IMAGE_TRUNCATED"


def test_a_wrong_checksum_is_unreadable():
    data = bytearray(encode(Image.fromarray(STORED)))
    data[data.index(b"IDAT") + 6] ^= 255
    assert code_of(bytes(data)) == "IMAGE_UNREADABLE"


def test_the_bomb_is_a_whole_picture():
    rgb, info = decode(black_png(300, 200), POLICY)
    assert (info.mode, info.width, info.height) == ("L", 300, 200)
    assert not np.asarray(rgb).any()
    assert len(black_png(20_000, 20_000)) < 400_000


def test_too_large_is_refused_by_the_header_without_memory(tmp_path):
    """In a process of its own, where the peak is this test's alone: 400 megapixels in 388 KB, and a large JPEG."""
    (tmp_path / "bomb").write_bytes(black_png(20_000, 20_000))
    (tmp_path / "large").write_bytes(jpeg_that_says((20_001, 20_001)))
    for name in ("PNG", "JPEG"):
        (tmp_path / name).write_bytes(encode(Image.fromarray(STORED), name))
    script = """
        from pathlib import Path

        from photon.errors import ImageError
        from photon.images.decode import DecodePolicy, decode

        def peak():  # in KiB; what getrusage tells counts the parent in
            status = Path("/proc/self/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0])

        decode("PNG", DecodePolicy()), decode("JPEG", DecodePolicy())  # Pillow's plugins are imported here
        before = peak()
        codes = []
        for name in ("bomb", "large"):
            try:
                decode(name, DecodePolicy())
            except ImageError as error:
                codes.append(error.code)
        assert codes == ["IMAGE_TOO_LARGE"] * 2, codes
        grown = peak() - before
        assert grown < 20_000, grown  # KiB; the picture would be 1.6 million
        raise SystemExit(44)
    """
    run = subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=60)
    assert run.returncode == 44


def test_the_limit_is_the_policys_alone():
    """Pillow's own, 89 megapixels to warn and 179 to fail, is neither used nor changed."""
    limit = Image.MAX_IMAGE_PIXELS
    for side, policy in ((10_000, POLICY), (20_000, DecodePolicy(max_pixels=400_000_000))):
        assert probe(black_png(side, side), policy) == (side, side)
    assert code_of(encode(Image.new("L", (11, 10))), DecodePolicy(max_pixels=109)) == "IMAGE_TOO_LARGE"
    decode(encode(Image.new("L", (11, 10))), DecodePolicy(max_pixels=110))
    assert code_of(Image.new("L", (11, 10)), DecodePolicy(max_pixels=109)) == "IMAGE_TOO_LARGE"
    with pytest.raises(ImageError, match=r"image\.max_pixels = 180000000"):
        probe(black_png(20_000, 20_000), POLICY)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_many_threads():
    sources = [oriented(n % 8 + 1, "TIFF" if n % 2 else "PNG") for n in range(16)]
    shared = Image.open(io.BytesIO(oriented(6, "PNG")))
    with ThreadPoolExecutor(8) as pool:
        for n, (rgb, _) in enumerate(pool.map(lambda data: decode(data, POLICY), sources * 8)):
            assert np.array_equal(np.asarray(rgb)[..., 0], SEEN[n % 8 + 1])
        for rgb, _ in pool.map(lambda _: decode(shared, POLICY), range(16)):
            assert np.array_equal(np.asarray(rgb)[..., 0], SEEN[6])


def test_quiet_holds_for_pillow_in_this_thread_only():
    def warn(module: str) -> None:
        warnings.warn_explicit("something", UserWarning, "file.py", 1, module=module)

    with quiet():
        warn("PIL.TiffImagePlugin")
        with pytest.raises(UserWarning, match="something"):
            warn("torch")
        with ThreadPoolExecutor(1) as pool, pytest.raises(UserWarning, match="something"):
            pool.submit(warn, "PIL.TiffImagePlugin").result()
    with pytest.raises(UserWarning, match="something"):
        warn("PIL.TiffImagePlugin")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # goes in front of ours
        with quiet():
            warn("PIL.TiffImagePlugin")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bytes_that_were_changed_at_random(data):
    """Whatever is flipped, a picture or an ImageError comes out, and nothing else."""
    format = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF", "JPEG2000"]))
    plain = format in ("GIF", "BMP", "JPEG2000")
    encoded = bytearray(encode(Image.fromarray(STORED), format) if plain else oriented(6, format))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        rgb, info = decode(bytes(encoded), DecodePolicy(max_pixels=1_000_000))
    except ImageError:
        return
    assert (rgb.mode, rgb.size) == ("RGB", (info.width, info.height))
