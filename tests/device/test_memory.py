from __future__ import annotations

from pathlib import Path

import pytest

from photon.device import memory


def lay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: dict[str, tuple[str, str]]) -> None:
    """A machine with 8 GB available, and control groups by path with (limit, use)."""
    meminfo, own, tree = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "groups"
    meminfo.write_text("MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n")
    own.write_text("0::/slurm/job_7\n")
    for path, (limit, use) in groups.items():
        folder = tree / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(limit + "\n")
        (folder / "memory.current").write_text(use + "\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory, "_OWN_GROUP", own)
    monkeypatch.setattr(memory, "_GROUPS", tree)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({}, 8_192_000_000),
        ({"slurm/job_7": ("max", "5")}, 8_192_000_000),
        ({"slurm/job_7": ("4000000000", "1500000000")}, 2_500_000_000),
        ({"slurm/job_7": ("max", "5"), "slurm": ("3000000000", "2900000000")}, 100_000_000),
        ({"slurm/job_7": ("100", "200")}, 0),
    ],
)
def test_page_cache_counts_as_free_and_limits_hold(
    groups: dict[str, tuple[str, str]], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, monkeypatch, groups)
    assert memory.available_bytes() == expected


def test_here() -> None:
    assert 0 < memory.available_bytes() < 1 << 50
