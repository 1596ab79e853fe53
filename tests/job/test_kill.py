"""SIGKILL at any instant: the next run goes on, and in the end everything is as if nothing had happened."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.job.killing import check_whole, committed, copy_plan, digests, kill_at_random, make_base
from tests.job.zygote import Zygote

POINTS = ["before fsync", "after fsync", "after rename", "after folder", "in record", "after record", "after plan"]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    folder = tmp_path_factory.mktemp("kill")
    make_base(folder, zygote)
    return folder


@pytest.fixture
def folder(base: Path) -> Iterator[Path]:
    copy_plan(base)
    yield base
    shutil.rmtree(base / "killed", ignore_errors=True)


@pytest.mark.parametrize("after", [pytest.param(0, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("point", POINTS[:-1])
def test_between_any_two_steps_of_a_commit(folder: Path, zygote: Zygote, point: str, after: int) -> None:
    """The first commit of the job, and one in its middle."""
    assert zygote.run(folder, "run", "killed.yaml", at=(point, after))["signal"] == 9
    before = committed(folder / "killed")
    assert len(before) == after + (point == "after record")
    assert zygote.run(folder, "run", "killed.yaml")["exit"] == 0
    assert before.items() <= digests(folder / "killed").items()
    check_whole(folder)
    log = (folder / "log.txt").read_text()
    assert ("took over part-" in log) == (point in ("after rename", "after folder", "in record"))
    (folder / "log.txt").unlink()


def test_right_after_the_plan(base: Path, zygote: Zygote) -> None:
    assert zygote.run(base, "run", "killed.yaml", at=("after plan", 0))["signal"] == 9
    job = (base / "killed" / "plan.json").read_bytes()
    assert zygote.run(base, "run", "killed.yaml")["exit"] == 0
    assert (base / "killed" / "plan.json").read_bytes() == job
    assert len(committed(base / "killed")) == len(committed(base / "whole"))
    shutil.rmtree(base / "killed")


@pytest.mark.slow
def test_at_random_instants(folder: Path, zygote: Zygote) -> None:
    told = kill_at_random(folder, zygote, 40, random.Random(20261130))
    assert told["kills"] == 40
    assert told["in mid-job"] >= 3, "else the kills hit where nothing happens"
