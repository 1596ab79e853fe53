"""What a run shows: tally, progress and the closing summary."""

from __future__ import annotations

import io
import json
import logging
import os
from dataclasses import replace

import pytest

from photon.core import Failure
from photon.engine.statistics import Statistics
from photon.job import progress
from photon.job.outcome import Outcome
from photon.job.progress import Bar, Lines, Silent, clock, progress_for, progress_line
from photon.job.summary import Summary
from photon.job.tally import CodeCount, Tally

SUMMARY = Summary(
    new_rows=1200,
    rows=1200,
    ok=1185,
    failed=15,
    requests=4800,
    found=3210,
    seconds=60.0,
    codes=(
        CodeCount("IMAGE_TRUNCATED", 12, "a.jpg", "cut off"),
        CodeCount("PROMPT_NULL", 3, "b.jpg", "ask: column brand is null in this row, and the prompt needs it"),
    ),
    parts=2,
    bytes=345_678,
    output="outputs/cars",
    ipc="file",
    max_failure_rate=0.01,
    model="photon://tiny",
    meaningless=True,
)


def test_the_first_failure_of_a_code_is_told_in_full_and_later_ones_counted(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally()
    broken = Failure("IMAGE_TRUNCATED", "cut off\nat byte 7")
    with caplog.at_level(logging.WARNING, "photon"):
        tally.count(Outcome(0, "a", {}, found=3))
        tally.count(Outcome(1, "b", {}, failure=broken))
        tally.count(Outcome(2, "c", {}, failure=broken))
        tally.count(Outcome(3, "d", {}, found=1, failure=Failure("PROMPT_NULL", "null")))
    assert (tally.rows, tally.ok, tally.failed, tally.found) == (4, 1, 3, 4)
    assert tally.codes["IMAGE_TRUNCATED"] == CodeCount("IMAGE_TRUNCATED", 2, "b", "cut off at byte 7")
    assert [record.message for record in caplog.records] == [
        "row b failed: IMAGE_TRUNCATED: cut off at byte 7 (more of this code are counted, not shown)",
        "row d failed: PROMPT_NULL: null (more of this code are counted, not shown)",
    ]


def test_summary_at_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", os.path.abspath(".venv/bin/python"))
    assert SUMMARY.text() == (
        "1,200 rows: 1,185 ok, 15 failed (1.25%, over the budget of 1.00%)\n"
        "  IMAGE_TRUNCATED      12  first: row a.jpg: cut off\n"
        "  PROMPT_NULL           3  first: row b.jpg: ask: column brand is null in this row, and the prompt needs it\n"
        "4,800 requests answered, 3,210 objects and points found; 60.0 s, 20.0 images/s, 80.0 requests/s\n"
        "results: outputs/cars/data (2 part files, 345.7 kB); to open them:\n"
        "  .venv/bin/python -c \"import pyarrow.dataset as ds; "
        "print(ds.dataset('outputs/cars/data', format='ipc').to_table().to_pandas())\"\n"
        "NOTE: photon://tiny is not a trained model; its answers are meaningless and only show the format."
    )  # fmt: skip


def test_summary_of_other_runs() -> None:
    clean = replace(SUMMARY, ok=1200, failed=0, codes=(), meaningless=False, ipc="stream", parts=1, bytes=2_500_000)
    lines = clean.text().splitlines()
    assert lines[0] == "1,200 rows: 1,200 ok, 0 failed"
    assert "(1 part file, 2.5 MB)" in lines[2]
    assert "load_dataset('arrow', data_files='outputs/cars/data/*.arrow')" in lines[3]
    assert len(lines) == 4
    empty = replace(clean, rows=0, ok=0, requests=0, found=0, parts=0, bytes=0, seconds=0.0)
    assert empty.text().splitlines()[-1] == "the input, or this shard of it, has no rows; nothing was written"


def test_what_the_engine_did_in_two_lines() -> None:
    statistics = Statistics(
        steps={"vision": 1200, "prefill": 1310, "decode": 9876},
        wall_seconds=59.0,
        busy_seconds=57.82,
        rows=100_000,
        decode_rows=95_800,
        zombie_rows=1_140,
        zombie_seconds=0.62,
        requests_on_images=4800,
        prefixes=1200,
    )
    assert replace(SUMMARY, codes=(), statistics=statistics).text().splitlines()[2:4] == [
        "device busy 98.0%, idle 0.0953 ms a step; steps: 1,200 vision, 1,310 prefill, 9,876 decode of 9.7 rows",
        "4.0 requests to an encoded image; zombies: 1,140 rows (1.1%), 0.62 s of the device",
    ]


@pytest.mark.parametrize(("failed", "rate", "code"), [(0, 0.0, 0), (12, 0.01, 0), (13, 0.01, 3), (1, 0.0, 3)])
def test_verdict_by_the_rate_alone(failed: int, rate: float, code: int) -> None:
    assert replace(SUMMARY, failed=failed, max_failure_rate=rate).exit_code == code


def test_no_rows_is_no_failure() -> None:
    assert replace(SUMMARY, rows=0, ok=0, failed=0, max_failure_rate=0.0).exit_code == 0


def test_summary_as_json() -> None:
    made = json.loads(json.dumps(SUMMARY.as_dict()))
    assert (made["exit_code"], made["failure_rate"], made["images_per_second"]) == (3, 0.0125, 20.0)
    assert made["codes"][0] == {"code": "IMAGE_TRUNCATED", "count": 12, "row_id": "a.jpg", "message": "cut off"}


def tally(rows: int, failed: int, requests: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> Tally:
    monkeypatch.setattr("photon.job.tally.time.monotonic", lambda: 1000.0)
    return Tally(rows=rows, ok=rows - failed, requests=requests, started=1000.0 - seconds)


def test_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tally(1200, 3, 4800, 30.0, monkeypatch)
    assert progress_line(made, 10_000) == (
        "1,200 of 10,000 images, 40.0 images/s, 160.0 requests/s, 3 failed, 0:03:40 left"
    )
    assert progress_line(made, None) == "1,200 images, 40.0 images/s, 160.0 requests/s, 3 failed"
    assert clock(3 * 3600 + 62) == "3:01:02"


def test_plain_lines_come_twice_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    stream = io.StringIO()
    lines = Lines(stream)
    lines.start(100)
    for second in range(95):
        now = float(second)
        lines.update(Tally(rows=second, ok=second, started=-1.0))
    lines.close()
    assert [line.split(" ")[0] for line in stream.getvalue().splitlines()] == ["30", "60", "90"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    bar = progress_for(stream)
    assert isinstance(bar, Bar)
    bar.start(10)
    bar.update(Tally(rows=4, ok=3))
    bar.update(Tally(rows=10, ok=9))
    bar.close()
    assert "10/10" in stream.getvalue()
    assert isinstance(progress_for(io.StringIO()), Lines)
    assert isinstance(progress_for(stream, shown=False), Silent)
