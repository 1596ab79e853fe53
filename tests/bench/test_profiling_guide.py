"""The guide's snippets run as they stand, and leave the files that it says they leave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import profile_picture

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", GUIDE, re.S)


def run(code: str, workplace: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "docs/profiling.md", "exec"), names)
    assert all(answer.error is None for answer in names["answers"])
    return names


def test_there_are_two() -> None:
    assert ["TraceFile" in code for code in SNIPPETS] == [True, False]


def test_the_trace_of_the_steps(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(SNIPPETS[0], workplace)
    events = json.loads((workplace / "steps.json").read_text())
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert lanes == {"host", "upload", "compute", "readback"}
    decodes = [event for event in events if event["name"] == "decode"]
    assert len(decodes) == names["engine"].statistics.steps["decode"] > 0
    assert {"step", "kind", "slot", "rows", "zombies", "idle_ms", "held_ms"} <= decodes[0]["args"].keys()
    assert capsys.readouterr().out.startswith("device busy ")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what torch's profiler says of itself differs by version
def test_torchs_profiler_sees_the_operators_of_the_engines_threads(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(SNIPPETS[1], workplace)
    assert "Self CPU" in capsys.readouterr().out
    events = json.loads((workplace / "kernels.json").read_text())["traceEvents"]
    assert {"aten::mm", "aten::addmm"} & {event.get("name") for event in events}


def test_the_page_names_what_there_is() -> None:
    for path in re.findall(r"`(?:python |pytest )?((?:benchmarks|tests|photon)/[\w/.]+)", GUIDE):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / path).exists(), path
    picture = (ROOT / "docs" / "images" / "profile.svg").read_text(encoding="utf-8")
    assert picture.startswith("<?xml")
    assert "simulated" in GUIDE.lower()


def test_what_the_picture_shows() -> None:
    """Blocking steps as published for this card, no idle at depth 2, and all of the blocking idle with the plant."""
    periods, idles = {}, {}
    for name, depth, variant in profile_picture.PANELS:
        records = profile_picture.steady(depth, variant)
        starts = [record.forward.start for record in records[1:]]
        periods[name[:7], variant] = 1e3 * (starts[-1] - starts[0]) / (len(starts) - 1)
        gaps = profile_picture.gaps(records[1:])
        idles[name[:7], variant] = 1e3 * sum(gap.seconds for gap in gaps) / len(gaps)
    assert list(periods.values()) == pytest.approx([5.55, 3.98, 5.55], abs=0.02)
    assert list(idles.values()) == pytest.approx([1.57, 0.0, 1.57], abs=0.02)
