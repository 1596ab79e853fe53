"""The scripted engine: same answers whoever asks, honest about broken pictures, free of torch."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO

import PIL.Image

import photon
from photon.core import Request
from photon.engine.load import load_engine
from photon.images.decode import DecodePolicy


def png() -> bytes:
    file = BytesIO()
    PIL.Image.new("RGB", (8, 6)).save(file, "PNG")
    return file.getvalue()


def ask(ids: range) -> list[Request]:
    return [
        Request((i, skill), photon.Image(png()), skill, "cat")
        for i in ids
        for skill in ("detect", "point", "query", "caption")
    ]


def test_answers_depend_on_the_request_alone() -> None:
    engine = load_engine("photon://null", policy=DecodePolicy())
    whole = {r.id: (r.text, r.objects, r.points) for r in engine.run(ask(range(30)))}
    part = {r.id: (r.text, r.objects, r.points) for r in engine.run(ask(range(10, 20)))}
    assert len(whole) == 120
    assert all(whole[id] == answer for id, answer in part.items())
    objects = [len(answer[1]) for id, answer in whole.items() if id[1] == "detect"]
    assert set(objects) == {0, 1, 2, 3, 4}


def test_broken_pictures_fail() -> None:
    engine = load_engine("photon://null", policy=DecodePolicy())
    (result,) = engine.run([Request(0, photon.Image(png()[: len(png()) // 2]), "detect", "cat")])
    assert result.error is not None
    assert result.error.code == "IMAGE_TRUNCATED"


def test_no_torch() -> None:
    code = (
        "import sys; from photon.engine.load import load_engine; from photon.images.decode import DecodePolicy; "
        "load_engine('photon://null', policy=DecodePolicy()); "
        "print([m for m in ('torch', 'transformers', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
