"""``photon-batch bench decode``: the figures, what is skipped, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

from photon.bench import bandwidth
from photon.bench.decode import cache_bytes, numbers, weight_bytes
from photon.cli import app
from photon.engine import fast_decoder
from photon.engine.fast_decoder import load_on
from photon.errors import UsageError
from tests.reference import FOLDER

SMALL = ("bench", "decode", "--tokens", "12", "--repeats", "1", "--check-every", "1,5")


@pytest.fixture(autouse=True)
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bandwidth._BYTES, "cpu", 1 << 20)


def photon_batch(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def figures(*arguments: str) -> dict[str, Any]:
    done = photon_batch(*SMALL, *arguments, "--json")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 1
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@pytest.mark.parametrize("drawn", [(), ("--temperature", "1", "--top-p", "0.9", "--top-k", "40")])
def test_every_way_gives_the_same_tokens(drawn: tuple[str, ...]) -> None:
    made = figures("--modes", "eager", *drawn, "--image", str(FOLDER / "images" / "noise_160x200.png"))
    assert [(row["mode"], row["check_every"]) for row in made["rows"]] == [("plain", None), ("eager", 1), ("eager", 5)]
    assert all(row["same_tokens"] and row["status"] == "ok" for row in made["rows"])
    assert [row["looks"] for row in made["rows"]] == [12, 12, 4]
    assert (made["capacity"], made["tokens"], made["measured"]) == (1024, 12, True)
    for row in made["rows"]:
        assert row["tokens_per_s"] * row["ms_per_step"] == pytest.approx(1000)
        assert row["gb_per_s"] == pytest.approx(made["weight_bytes"] * row["tokens_per_s"] / 1e9)
        assert row["of_bandwidth"] == pytest.approx(row["gb_per_s"] / made["copy_gb_per_s"])
    plain, _, fifth = made["rows"]
    assert fifth["surplus_ms"] == pytest.approx(2 * fifth["ms_per_step"])
    assert fifth["speedup"] == pytest.approx(plain["ms_per_step"] / fifth["ms_per_step"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="with CUDA it runs")
def test_graph_is_reported_as_skipped() -> None:
    *_, graph = figures("--modes", "eager,graph", "--device", "cpu")["rows"]
    assert (graph["mode"], graph["status"], graph["tokens_per_s"]) == ("graph", "skipped", None)
    assert "needs a CUDA device" in graph["why"]


def test_a_failed_compilation_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(step: object, choice: str) -> object:
        raise UsageError("mode compile: torch.compile failed")

    monkeypatch.setattr(fast_decoder, "_compiled", fail)
    done = photon_batch(*SMALL, "--modes", "compile")
    assert done.exit_code == 0
    assert "compile                 failed: mode compile: torch.compile failed" in done.stdout


def test_the_table_says_what_was_measured_where() -> None:
    done = photon_batch(*SMALL, "--modes", "eager")
    assert done.exit_code == 0
    for words in ("measured: ", "float32 on cpu", "median of 1 runs", "machine: ", "load ", "eager, look every 5"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--modes", "fast"), "modes are eager, graph, compile, and check_every is at least 1; 'fast' is neither"),
        (("--check-every", "0"), "check_every is at least 1; 0 is neither"),
        (("--check-every", "often"), "numbers with commas are wanted, such as 1,8,32, not 'often'"),
        (("--tokens", "1"), "needs at least 2 tokens and 1 repeat, not 1 and 1"),
        (("--tokens", "5000"), "the answer up to 5000"),
        (("--top-p", "0"), "setting top_p must be a number in (0, 1]"),
        (("--device", "gpu"), "device must be auto, cpu or cuda, not 'gpu'"),
        (("--model", "photon://small"), "photon://small does not ship"),
        (("--image", "nowhere.png"), "nowhere.png"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], message: str) -> None:
    done = photon_batch(*SMALL, "--modes", "eager", *arguments)
    assert done.exit_code != 0
    assert message in done.output


def test_bytes() -> None:
    """Of the tiny model, by hand: dim 128, 3 blocks, vocabulary 512, float32."""
    model = load_on("photon://tiny", "cpu", "float32").model
    block = 2 * 128 + (128 * 384 + 384) + (128 * 128 + 128) + (128 * 512 + 512) + (512 * 128 + 128)
    assert weight_bytes(model) == 4 * (3 * block + 2 * 128 + 128 * 512 + 512 + 128)
    assert cache_bytes(model, 256) == 4 * 2 * 3 * 128 * 256


def test_numbers() -> None:
    assert numbers("1, 8,32") == [1, 8, 32]
