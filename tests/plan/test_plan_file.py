"""The plan on disk: one of those that race counts, and later words replace earlier ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import photon.plan.plan_file
from photon.data.unit import Unit
from photon.plan.plan import Plan, Span
from photon.plan.plan_file import create_plan, extend_plan, read_plan


def plan(job: str = "1f") -> Plan:
    return Plan(job, 4, "parquet", {"image": "image", "limit": None}, [Unit("a.parquet", (3, 2))], [Span(0, 0, 5)])


def test_the_winner_may_have_removed_the_loser_s_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def quicker(path: Path, text: str) -> bool:
        monkeypatch.undo()
        assert create_plan(tmp_path, plan("2e"))
        for units in tmp_path.glob("units-*.jsonl"):
            if units.name not in path.read_text(encoding="utf-8"):
                units.unlink()
        return False

    monkeypatch.setattr(photon.plan.plan_file, "create", quicker)
    assert not create_plan(tmp_path, plan())
    assert read_plan(tmp_path) == plan("2e")


def test_the_newest_words_count(tmp_path: Path) -> None:
    assert create_plan(tmp_path, plan())
    reworded: dict[str, Any] = {"image": "image", "limit": 5}
    assert extend_plan(tmp_path, replace(plan(), reading=reworded), (), ())
    assert read_plan(tmp_path) == replace(plan(), reading=reworded, generations=2)
