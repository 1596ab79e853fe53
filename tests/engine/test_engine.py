"""What users of ``photon.Engine`` rely on beside right answers: bounds, failures of one request, order, reuse."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import PIL.Image
import pytest

import photon
from photon.core import Request
from photon.engine.null import NullEngine
from photon.errors import EngineError, StallError, UsageError
from tests.reference import FOLDER, picture


def image(name: str = "noise_160x200") -> photon.Image:
    return photon.Image(FOLDER / "images" / f"{name}.png")


def small(colour: str = "red") -> photon.Image:
    file = BytesIO()
    PIL.Image.new("RGB", (40, 30), colour).save(file, "PNG")
    return photon.Image(file.getvalue())


@pytest.fixture(scope="module")
def engine() -> Iterator[photon.Engine]:
    engine = photon.Engine.load("photon://tiny", max_batch=4)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def exact() -> Iterator[photon.Engine]:
    """The reference's decisions, with repetition watched."""
    engine = photon.Engine.load("photon://tiny", decision="reference", stop_repetition=True)
    yield engine
    engine.close()


def test_results_carry_what_is_known(engine: photon.Engine) -> None:
    (result,) = engine.run([Request("a", small(), "detect", "cat", max_objects=3)])
    assert result.image is not None
    assert (result.image.width, result.image.height, result.image.mode) == (40, 30, "RGB")
    assert result.image.sha256 is not None
    assert len(result.image.sha256) == 64
    assert result.objects is not None
    assert all(box.label == "cat" for box in result.objects)
    assert result.n_tokens == len(result.token_ids) == 3 * len(result.objects)
    times = result.timings
    assert 0 < times.submitted <= times.prepared <= times.started <= times.finished


def test_every_kind_of_image_source_is_the_same_picture(engine: photon.Engine) -> None:
    path = FOLDER / "images" / "noise_160x200.png"
    sources: list[Any] = [path, str(path), path.read_bytes(), bytearray(path.read_bytes()), picture("noise_160x200")]
    asked = [Request(i, photon.Image(source), "detect", "cat", max_objects=3) for i, source in enumerate(sources)]
    results = list(engine.run(asked))
    assert {r.id for r in results} == set(range(5))
    assert len({tuple(b.x_min for b in r.objects or ()) for r in results}) == 1


def test_many_questions_on_one_image_share_its_encoding(engine: photon.Engine, monkeypatch: Any) -> None:
    seen: list[int] = []
    vision = engine._forward.vision
    monkeypatch.setattr(
        engine._forward, "vision", lambda slot, pictures: seen.append(len(pictures)) or vision(slot, pictures)
    )
    shared = image()
    asked = [Request(i, shared, "point", f"thing {i}", max_objects=2) for i in range(40)]
    assert {r.id for r in engine.run(asked)} == set(range(40))
    assert seen == [1]


def test_bad_images_fail_alone(engine: photon.Engine) -> None:
    broken = photon.Image(b"no picture")
    asked = [
        Request("ok", small(), "detect", "cat", max_objects=1),
        Request("bytes", broken, "detect", "cat"),
        Request("again", broken, "point", "cat"),
        Request("empty", photon.Image(b""), "caption", max_tokens=2),
        Request("path", photon.Image("/nowhere/at/all.jpg"), "caption", max_tokens=2),
    ]
    codes = {r.id: r.error.code if r.error else None for r in engine.run(asked)}
    assert codes == {
        "ok": None,
        "bytes": "IMAGE_UNIDENTIFIED",
        "again": "IMAGE_UNIDENTIFIED",
        "empty": "IMAGE_EMPTY",
        "path": "IMAGE_MISSING",
    }


def test_a_prompt_too_long_fails_alone_and_a_long_one_is_cut_short(engine: photon.Engine) -> None:
    asked = [
        Request("long", small(), "query", "why " * 3000),
        Request("short", small(), "query", "why", max_tokens=3),
        Request("edge", small(), "query", "q" * 1300, max_tokens=768),
    ]
    results = {r.id: r for r in engine.run(asked)}
    assert results["long"].error is not None
    assert results["long"].error.code == "PROMPT_TOO_LONG"
    assert results["long"].image is not None
    assert results["short"].error is None
    edge = results["edge"]
    assert edge.error is None
    assert edge.finish_reason in ("length", "stop", "repetition")
    assert edge.n_tokens <= 2048 - 730 - 1300


def test_caps(exact: photon.Engine) -> None:
    asked = [Request(n, image("china_427x640"), "detect", "cat", max_objects=n) for n in (1, 2, 3)]
    for result in exact.run(asked):
        assert len(result.objects or ()) == result.id
        assert result.finish_reason == "max_objects"
    (text,) = exact.run([Request(0, image("china_427x640"), "query", "what is this?", max_tokens=5)])
    assert (text.n_tokens, text.finish_reason) == (5, "length")


def test_repetition_is_stopped_and_says_so(exact: photon.Engine, monkeypatch: Any) -> None:
    """On this picture the tiny model says one token seven times, then goes on: a circle, if six are called one."""
    request = Request(0, image("china_427x640"), "query", "what is this?", max_tokens=8)
    (whole,) = exact.run([request])
    assert (whole.finish_reason, whole.n_tokens) == ("length", 8)
    monkeypatch.setattr("photon.skills.repetition.FEWEST_TOKENS", 6)
    (cut,) = exact.run([request])
    assert (cut.finish_reason, list(cut.token_ids)) == ("repetition", [123] * 6)


def test_drawn_text_depends_on_its_seed_alone(engine: photon.Engine) -> None:
    def ask(id: object, seed: int) -> Request:
        return Request(id, image(), "query", "what is this?", max_tokens=12, temperature=1.0, top_p=0.9, seed=seed)

    (alone,) = engine.run([ask("alone", 7)])
    together = {r.id: r.token_ids for r in engine.run([ask(seed, seed) for seed in (3, 7, 9, -1, 2**63)])}
    assert together[7] == alone.token_ids
    assert len({tuple(ids) for ids in together.values()}) > 1


def test_the_iterable_is_pulled_lazily(engine: photon.Engine) -> None:
    pulled = 0
    shared = small()

    def endless() -> Iterator[Request]:
        nonlocal pulled
        while True:
            pulled += 1
            yield Request(pulled, shared, "point", "x", max_objects=1)

    run = engine.run(endless())
    for _ in range(5):
        next(run)
    run.close()
    assert pulled <= 64 + 16 * 4 + 64  # what may be ahead, and what was answered meanwhile
    assert [r.error for r in engine.run([Request(0, small(), "point", "x", max_objects=1)])] == [None]


def test_an_exception_of_the_iterable_ends_the_run_and_the_engine_goes_on(engine: photon.Engine) -> None:
    def broken() -> Iterator[Request]:
        yield Request(0, small(), "point", "x", max_objects=1)
        raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="the caller's own"):
        list(engine.run(broken()))
    assert len(list(engine.run([Request(0, small(), "point", "x", max_objects=1)]))) == 1


def test_a_device_failure_ends_the_run_cleanly(engine: photon.Engine, monkeypatch: Any) -> None:
    calls, threads = 0, threading.active_count()
    text = type(engine._forward._model.text)
    forward = text.forward

    def failing(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("device on fire")
        return forward(*args)

    with monkeypatch.context() as patch:
        patch.setattr(text, "forward", failing)
        with pytest.raises(EngineError, match=r"failed in a decode step of . rows: RuntimeError: device on fire"):
            list(engine.run([Request(i, image("china_427x640"), "detect", "cat") for i in range(2)]))
    assert len(list(engine.run([Request(0, small(), "point", "x", max_objects=1)]))) == 1
    assert threading.active_count() <= threads


def test_one_run_at_a_time(engine: photon.Engine) -> None:
    run = engine.run([Request(i, small(), "point", "x", max_objects=1) for i in range(3)])
    next(run)
    with pytest.raises(UsageError, match="already running"):
        next(engine.run([]))
    run.close()
    assert list(engine.run([])) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 3}, "depth must be 1 or 2, not 3"),
        ({"device": "gpu"}, "device must be auto or cpu or cuda, not 'gpu'"),
        ({"device": "cuda"}, "device cuda: this torch finds no CUDA device"),
        ({"decision": "best"}, "decision must be masked or reference, not 'best'"),
        ({"dtype": "float16"}, "dtype must be auto or float32 or bfloat16"),
        ({"max_batch": 0}, "max_batch must be auto or an integer from 1 to 4096"),
        ({"memory_fraction": 2}, r"memory_fraction must be in \(0, 1\]"),
        ({"memory_fraction": 1e-9}, "one request needs .* GB of key/value memory"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        photon.Engine.load("photon://tiny", **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("x", None, "segment", "cat"), ValueError, "unknown skill 'segment'"),
        (("x", None, "detect", "cat"), ValueError, "detect needs an image"),
        (("x", "a.jpg", "detect", "cat"), TypeError, r"must be a photon\.Image, not str"),
    ],
)
def test_wrong_requests(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Request(*arguments)


def test_wrong_settings() -> None:
    with pytest.raises(TypeError, match="unknown setting 'max_object'; did you mean 'max_objects'"):
        Request(0, small(), "detect", "cat", max_object=3)
    with pytest.raises(ValueError, match="setting max_objects must be an integer of at least 1, not 0"):
        Request(0, small(), "detect", "cat", max_objects=0)
    with pytest.raises(ValueError, match="detect needs a prompt"):
        Request(0, small(), "detect")
    with pytest.raises(ValueError, match="spatial_refs must be points"):
        Request(0, small(), "query", "why", spatial_refs=[(0.5, 1.5)])


def test_bfloat16_runs() -> None:
    engine = photon.Engine.load("photon://tiny", dtype="bfloat16")
    results = list(engine.run([Request(skill, image(), skill, "cat", max_objects=3) for skill in ("detect", "point")]))
    engine.close()
    assert all(r.error is None for r in results)


def test_a_hanging_device_is_noticed(monkeypatch: Any) -> None:
    """The run ends with what was in flight and every thread's stack, and the engine is not used again."""
    engine = photon.Engine.load("photon://tiny", stall_timeout=0.5)
    gate = threading.Event()
    text = type(engine._forward._model.text)
    monkeypatch.setattr(text, "forward", lambda *args: gate.wait(20))
    with pytest.raises(StallError, match=r"no step was finished in 0.5 s; a prefill step of 1 rows is in flight") as e:
        list(engine.run([Request(0, small(), "point", "x", max_objects=1)]))
    assert any("thread photon-compute" in note and "gate.wait" in note for note in e.value.__notes__)
    with pytest.raises(UsageError, match="has stalled; load a new one"):
        next(engine.run([]))
    gate.set()
    engine.close()


@pytest.mark.slow
def test_a_slow_caller_is_no_stall() -> None:
    engine = photon.Engine.load("photon://tiny", stall_timeout=1.5)

    def slowly() -> Iterator[Request]:
        for i in range(2):
            time.sleep(2.5)
            yield Request(i, small(), "point", "x", max_objects=1)

    answered = 0
    for _ in engine.run(slowly()):
        answered += 1
        time.sleep(2)
    engine.close()
    assert answered == 2


def test_an_iterable_that_fails_at_any_moment_ends_the_run(engine: photon.Engine) -> None:
    """Also when the engine is idle, and when the caller is slow: an end that looks like a good one would lose rows."""

    def breaks_off(after: int) -> Iterator[Request]:
        for i in range(after):
            yield Request(i, small(), "point", "x", max_objects=1)
        raise OSError("the disk is gone")

    def consume(run: Iterator[object], pause: float) -> None:
        for _ in run:
            time.sleep(pause)

    null = NullEngine()
    for attempt in range(60):
        for asked in (engine, null):
            with pytest.raises(OSError, match="the disk is gone"):
                consume(asked.run(breaks_off(attempt % 3)), 0.002 * (attempt % 2))
    with pytest.raises(AttributeError):
        list(engine.run([None]))  # type: ignore[list-item]


def test_a_refused_question_leaves_the_others_about_its_image_alone(engine: photon.Engine) -> None:
    for attempt in range(5):
        shared = small()
        asked = [
            Request("refused", shared, "query", "why " * 3000),
            Request("refused too", shared, "query", "why " * 3000),
            Request("fine", shared, "point", "x", max_objects=1),
        ]
        asked = asked[attempt % 3 :] + asked[: attempt % 3]
        codes = {r.id: r.error.code if r.error else None for r in engine.run(asked)}
        assert codes == {"refused": "PROMPT_TOO_LONG", "refused too": "PROMPT_TOO_LONG", "fine": None}


def test_a_closed_engine_says_so() -> None:
    engine = photon.Engine.load("photon://tiny")
    engine.close()
    engine.close()
    with pytest.raises(UsageError, match="is closed; load a new one"):
        next(engine.run([]))
