"""The GPU day without a GPU: that it runs small, says what it skipped, and that one failure costs one section."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import gpu_day
from benchmarks.gpu import day as gpu
from benchmarks.gpu.rows import Day, Figure, Row, Section, Unavailable, skipped

ROOT = Path(__file__).parents[2]
#: What photon-batch needs and the GPU day must not.
BLOCKED = ("pydantic", "typer", "datasets", "ruamel", "ruamel.yaml", "matplotlib", "pycocotools", "sklearn", "pytest")
NAMES = ["correctness", "safety", "ceilings", "floors", "detect", "stray", "text"]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The report and what was printed, of a process in which nothing beyond the day's own packages can be imported.

    Time is stretched so that a busy machine measures everything too; what the run takes of the processor is asserted.
    """
    folder = tmp_path_factory.mktemp("day")
    script = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({BLOCKED!r})); sys.path.pop(0); "
        f"sys.argv = ['gpu_day.py', '--smoke', '--stretch', '6', '--out', {str(folder / 'day.json')!r}]; "
        f"runpy.run_path({str(ROOT / 'benchmarks' / 'gpu_day.py')!r}, run_name='__main__')"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    return json.loads((folder / "day.json").read_text()), done.stdout


@pytest.mark.slow
def test_a_smoke_run_measures_every_section(smoke: tuple[dict[str, Any], str]) -> None:
    report, _ = smoke
    assert [section["name"] for section in report["sections"]] == NAMES
    assert [section["status"] for section in report["sections"]] == ["ok"] * len(NAMES)
    assert report["failed_sections"] == []
    assert report["rows"]["failed"] == report["rows"]["not run"] == 0
    rows = {row["what"]: row for section in report["sections"] for row in section["rows"]}
    assert rows["cpu float32, depth 1: the reference's outputs"]["figures"]["equal"] == {"value": 2, "unit": "answers"}
    planted = rows["text, 2 streams, depth 2, a synchronisation in finalize"]
    assert planted["figures"]["requests"]["value"] > 0
    for row in rows.values():
        assert all(figure["unit"] and figure["value"] is not None for figure in row["figures"].values()), row


@pytest.mark.slow
def test_every_figure_says_that_it_is_of_a_smoke_run_on_a_cpu(smoke: tuple[dict[str, Any], str]) -> None:
    report, printed = smoke
    for labelled in (report, *(row for section in report["sections"] for row in section["rows"])):
        assert labelled["smoke"] is True
        assert labelled["device"] == "cpu"
    machine = report["machine"]
    assert machine["torch"] == torch.__version__
    assert machine["python"].split(".")[0] == "3"
    assert {"gpu", "driver", "triton", "transformers", "processor", "cores", "load", "commit"} <= machine.keys()
    assert printed.startswith("SMOKE RUN: small sizes, its figures mean nothing; device cpu\n")
    for name in NAMES:
        assert f"== {name} [cpu, smoke]: ok" in printed


@pytest.mark.slow
def test_what_needs_a_cuda_device_is_skipped_and_never_green(smoke: tuple[dict[str, Any], str]) -> None:
    report, _ = smoke
    rows = [row for section in report["sections"] for row in section["rows"]]
    for row in rows:
        what = row["what"]
        needs = what.startswith(("cuda", "Triton", "no synchronisation", "three streams", "host memory", "every copy"))
        needs = needs or "graphs on" in what or "sync debug mode" in what
        assert (row["status"], row["why"]) == (("skipped", "no CUDA device") if needs else ("ok", None)), what
        assert not (needs and row["figures"])
    assert sum(row["status"] == "skipped" for row in rows) > 20


# Planted sections.


def fine(name: str, day: Day) -> Iterator[Row]:
    yield Row(f"{name} 1", figures={"rate": Figure(2.5, "1/s")})
    yield Row(f"{name} 2", figures={"rate": Figure(float("nan"), "1/s")})


def raising(day: Day) -> Iterator[Row]:
    yield Row("before")
    raise RuntimeError("CUDA error: device-side assert triggered")


def dying(day: Day) -> Iterator[Row]:
    yield Row("alive")
    os.kill(os.getpid(), signal.SIGKILL)


def hanging(day: Day) -> Iterator[Row]:
    yield Row("awake")
    time.sleep(600)


def wrong(day: Day) -> Iterator[Row]:
    yield day.attempt("bad", lambda: {"x": Figure(1 / 0, "1")})
    yield day.attempt("absent", partial(absent))
    yield day.attempt("good", lambda: {"x": Figure(1, "1")})


def absent() -> dict[str, Figure]:
    raise Unavailable("not in this checkout")


def looking(out: Path, day: Day) -> Iterator[Row]:
    """Looks at the file while the day goes on."""
    first = json.loads(out.read_text())["sections"][0]
    rate = day.figure("first", "rate")
    yield Row("saw", why=f"{first['status']}, {len(first['rows'])} rows, rate {rate}, {sorted(os.listdir(out.parent))}")


def planned(section: Section, seconds: float = 30) -> gpu.Planned:
    return gpu.Planned(section, seconds, seconds)


def days(tmp_path: Path, sections: dict[str, gpu.Planned]) -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    gpu.run(smoke=True, out=tmp_path / "out" / "day.json", sections=sections, tell=told.append)
    return json.loads((tmp_path / "out" / "day.json").read_text()), told


def test_a_failing_section_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SMOKE_GRACE", 0.3)
    sections = {
        "first": planned(partial(fine, "first")),
        "raising": planned(raising),
        "dying": planned(dying),
        "hanging": planned(hanging, 0.2),
        "wrong": planned(wrong),
        "last": planned(partial(fine, "last")),
    }
    report, told = days(tmp_path, sections)
    found = {s["name"]: (s["status"], [row["status"] for row in s["rows"]], s["why"] or "") for s in report["sections"]}
    assert found["first"] == found["last"] == ("ok", ["ok", "ok"], "")
    assert found["wrong"] == ("failed", ["failed", "skipped", "ok"], "")
    for name, why in (
        ("raising", "RuntimeError: CUDA error: device-side assert triggered"),
        ("dying", "its process died with exit code -9"),
        ("hanging", "killed: it did not end in time"),
    ):
        status, rows, told_why = found[name]
        assert (status, rows) == ("failed", ["ok"])
        assert why in told_why
    assert report["failed_sections"] == ["raising", "dying", "hanging", "wrong"]
    assert report["rows"] == {"ok": 8, "failed": 1, "skipped": 1, "not run": 0}
    bad, gone, _ = report["sections"][4]["rows"]
    assert (bad["why"], gone["why"]) == ("ZeroDivisionError: division by zero", "not in this checkout")
    first = report["sections"][0]["rows"]
    assert [row["figures"]["rate"] for row in first] == [{"value": v, "unit": "1/s"} for v in (2.5, None)]
    assert "== raising [cpu, smoke]: failed: RuntimeError" in told[2]


def test_what_was_measured_is_on_disk_before_the_next_section(tmp_path: Path) -> None:
    sections = {"first": planned(partial(fine, "first")), "then": planned(partial(looking, tmp_path / "out/day.json"))}
    report, _ = days(tmp_path, sections)
    assert report["sections"][1]["rows"][0]["why"] == "ok, 2 rows, rate 2.5, ['day.json']"


def test_what_there_is_no_time_for_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(day: Day) -> Iterator[Row]:
        for number in range(3):
            yield day.attempt(f"slow {number}", lambda: time.sleep(0.3) or {})

    monkeypatch.setattr(gpu, "SMOKE_SECONDS", 0.0)
    report, told = days(tmp_path, {"late": planned(slow)})
    assert (report["sections"][0]["status"], report["sections"][0]["rows"]) == ("not run", [])
    assert "== late [cpu, smoke]: not run" in told[-1]
    monkeypatch.setattr(gpu, "SMOKE_SECONDS", 60.0)
    report, _ = days(tmp_path, {"slow": planned(slow, 0.2)})
    assert [(row["status"], row["why"]) for row in report["sections"][0]["rows"]] == [
        ("ok", None), ("not run", "out of time"), ("not run", "out of time"),
    ]  # fmt: skip


@pytest.mark.parametrize(("section", "code"), [(partial(fine, "it"), 0), (wrong, 1), (raising, 1)])
def test_exit_codes(section: Section, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SECTIONS", {"it": planned(section), "other": planned(lambda day: iter([skipped("x")]))})
    arguments = ["gpu_day.py", "--smoke", "--sections", "other,it", "--out", str(tmp_path / "day.json")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert gpu_day.main() == code
    report = json.loads((tmp_path / "day.json").read_text())
    assert [section["name"] for section in report["sections"]] == ["other", "it"]
    assert report["sections"][0]["status"] == "skipped"


def test_an_unknown_section_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_day.py", "--sections", "floors,roofs"])
    with pytest.raises(SystemExit) as ended:
        gpu_day.main()
    assert ended.value.code == 2
    assert "no section 'roofs'; there are correctness, safety, ceilings" in capsys.readouterr().err


def test_the_day_is_below_nine_minutes() -> None:
    assert list(gpu.SECTIONS) == NAMES
    assert sum(planned.seconds for planned in gpu.SECTIONS.values()) <= gpu.TOTAL_SECONDS
    assert gpu.TOTAL_SECONDS + gpu.GRACE < 540
    assert gpu.SMOKE_SECONDS + gpu.SMOKE_GRACE < 60
