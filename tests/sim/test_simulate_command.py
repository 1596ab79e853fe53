"""``photon-batch simulate``: the table, the JSON, the plot, and what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from photon.cli import app

SMALL = ("simulate", "--streams", "2", "--length", "9")


def photon_batch(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_json_carries_the_figures_and_their_costs() -> None:
    done = photon_batch(*SMALL, "--profile", "3090", "--json")
    assert done.exit_code == 0
    assert done.stdout.count("\n") == 1
    figures = json.loads(done.stdout)
    assert figures["simulated"] is True
    assert (figures["profile"], figures["basis"]) == ("3090", "published")
    for key in ("blocking_ms_per_step", "pipelined_ms_per_step", "speedup", "requests_per_s", "law"):
        assert figures[key] > 0, key
    assert figures["idle_ms_per_step"] <= 0.05
    assert 0 < figures["zombie_share"] < 0.2
    assert set(figures["costs"]) >= {"overhead_ms", "efficiency", "housekeeping_ms", "housekeeping_row_ms"}


def test_the_table_says_that_it_is_simulated() -> None:
    done = photon_batch(*SMALL, "--profile", "h200", "--inject", "sync-mask-upload")
    assert done.exit_code == 0
    assert done.stdout.startswith("simulated: text of 9 tokens, 2 at a time, profile h200 (costs estimated;")
    assert "injected: sync-mask-upload" in done.stdout
    assert "costs: overhead_ms 1.7" in done.stdout


def test_detect_shows_what_sharing_the_slots_gains() -> None:
    done = photon_batch("simulate", "--mix", "detect", "--streams", "4", "--objects", "1", "--crops", "1")
    assert done.exit_code == 0
    assert "decode alone" in done.stdout


def test_the_plot_is_an_svg_of_both_depths(tmp_path: Path) -> None:
    plot = tmp_path / "timeline.svg"
    assert photon_batch(*SMALL, "--plot", str(plot)).exit_code == 0
    words = " ".join(ET.parse(plot).getroot().itertext())
    for word in ("simulated", "depth 1, blocking", "depth 2, pipelined", "host", "upload", "compute", "readback"):
        assert word in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "b20"), "no profile 'b20'; did you mean b200?"),
        (("--mix", "caption"), "mix must be text, detect or point, not 'caption'"),
        (("--streams", "0"), "streams must be from 1 to 256, not 0"),
        (("--crops", "14"), "crops must be from 1 to 13, not 14"),
        (("--inject", "bug"), "inject must be sync-mask-upload, not 'bug'"),
        (("--plot", "/nowhere/x.svg"), "/nowhere/x.svg: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, str], message: str) -> None:
    done = photon_batch(*SMALL, *arguments)
    assert done.exit_code == (5 if "--plot" in arguments else 2)
    assert message in done.output
