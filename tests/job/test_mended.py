"""A picture of a folder that was put right under its old name: asked about as it is, or refused where answers stay."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from photon.audit.verify import verify
from photon.errors import UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from photon.manifest.manifest import Manifest
from tests.data.pictures import picture

Write = Callable[..., Path]
TASKS = "[{name: things, type: detect, objects: [cat]}, {name: cap, type: caption}]"


def put(name: str, data: bytes) -> None:
    """With a time of its own, as a picture has that was put there later."""
    path = Path("photos", name)
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(data)
    os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.fixture
def manifest(manifest_file: Write) -> Manifest:
    """Ten pictures, of which the third and the eighth are broken, in chunks of four."""
    Path("photos").mkdir()
    for n in range(10):
        put(f"{n}.png", b"broken" if n in (2, 7) else picture(n))
    return load_manifest(
        manifest_file(
            input="{folder: photos, id: file_name}", tasks=TASKS, errors="{max_failure_rate: 1}",
            output="{dir: out, chunk_rows: 4}",
        )
    )  # fmt: skip


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset("out/data", format="ipc").to_table().to_pylist()
    assert [row["row_id"] for row in found] == [f"{n}.png" for n in range(len(found))]
    return found


def test_a_mended_picture_is_asked_about_with_retry_failed(manifest: Manifest) -> None:
    assert run(manifest).failed == 2
    before = rows()
    put("2.png", picture(12))
    with pytest.raises(UsageError, match=r"2\.png changed .* ask pictures whose rows failed again with --retry-failed"):
        run(manifest)
    with pytest.raises(UsageError, match=r"2\.png changed"):
        run(manifest, retry=["IMAGE_TRUNCATED"])  # which it did not fail with
    done = run(manifest, retry=[])
    assert (done.rows, done.failed, done.requests) == (10, 1, 4), "both failed rows, of which one is still broken"
    after = rows()
    assert (before[2]["image"], after[2]["status"]) == (None, "ok")
    assert after[2]["image"]["sha256"] == hashlib.sha256(picture(12)).hexdigest()
    assert [row for n, row in enumerate(after) if n != 2] == [row for n, row in enumerate(before) if n != 2]
    assert verify(Path("out")).exit_code == 0
    again = run(manifest)  # and the plan knows the picture as it is now
    assert (again.requests, again.rows) == (0, 10)
    put("2.png", picture(13))
    with pytest.raises(UsageError, match=r"2\.png changed"):
        run(manifest, retry=[])


def test_a_picture_with_an_answer_stays(manifest: Manifest) -> None:
    run(manifest)
    put("2.png", picture(12))
    put("5.png", picture(15))
    with pytest.raises(UsageError, match=r"5\.png changed"):
        run(manifest, retry=[])
    assert [row["status"] for row in rows()].count("failed") == 2


def test_a_code_that_no_row_failed_with_is_told(manifest: Manifest, caplog: pytest.LogCaptureFixture) -> None:
    run(manifest)
    caplog.clear()
    assert run(manifest, retry=["IMAGE_UNIDENTIFIED", "IMAGE_TRUNCATE"]).requests == 4
    (told,) = (record.getMessage() for record in caplog.records if "no row failed with" in record.getMessage())
    assert told == (
        "no row failed with IMAGE_TRUNCATE, so none is asked again for it; those that did have IMAGE_UNIDENTIFIED"
    )


def test_a_copy_of_the_same_picture_is_no_other(manifest: Manifest) -> None:
    run(manifest)
    before = rows()
    for n in (0, 5, 9):
        put(f"{n}.png", picture(n))
    again = run(manifest)
    assert (again.requests, again.rows) == (0, 10)
    assert rows() == before
    assert verify(Path("out")).exit_code == 0


def test_a_picture_that_is_still_to_be_asked(manifest: Manifest) -> None:
    """Beyond what a first run was limited to, there is no answer that could mix."""
    run(manifest, limit=4)
    put("8.png", picture(18))
    assert run(manifest).rows == 10
    put("3.png", picture(13))
    with pytest.raises(UsageError, match=r"3\.png changed"):
        run(manifest)


def test_a_picture_that_replaces_one_of_a_planned_chunk_that_was_not_done(manifest: Manifest) -> None:
    from photon.audit.prepare import prepare

    prepare(manifest)
    put("7.png", picture(17))
    put("0.png", b"broken too")
    done = run(manifest)
    assert (done.rows, done.failed) == (10, 2)
    assert [n for n, row in enumerate(rows()) if row["status"] != "ok"] == [0, 2]
    assert verify(Path("out")).exit_code == 0


def test_several_at_once_and_new_ones_beside_them(manifest: Manifest) -> None:
    run(manifest)
    put("2.png", picture(12))
    put("7.png", picture(17))
    for n in (10, 11):
        put(f"{n}.png", picture(n + 10))
    done = run(manifest, retry=[])
    assert (done.rows, done.failed, done.requests) == (12, 0, 8)
    assert {row["status"] for row in rows()} == {"ok"}
    assert verify(Path("out")).exit_code == 0


def test_a_row_that_failed_in_one_task_alone_keeps_its_answers(manifest_file: Write) -> None:
    Path("photos").mkdir()
    for n in range(3):
        put(f"{n}.png", picture(n))
    tasks = "[{name: cap, type: caption}, {name: ask, type: query, question: '{folder}'}]"  # which is empty here
    manifest = load_manifest(
        manifest_file(input="{folder: photos, id: file_name}", tasks=tasks, errors="{max_failure_rate: 1}")
    )
    assert run(manifest).failed == 3
    put("1.png", picture(11))
    with pytest.raises(UsageError, match=r"1\.png changed"):
        run(manifest, retry=[])
