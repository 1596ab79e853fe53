"""What the figures were measured on. Touches CUDA, so it runs in a section's process."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def facts() -> Iterator[dict[str, Any]]:
    """One dictionary, None for what is not known here."""
    import torch

    cuda = torch.cuda.is_available()
    properties = torch.cuda.get_device_properties(0) if cuda else None
    yield {
        "device": "cuda" if cuda else "cpu",
        "gpu": properties.name if properties else None,
        "gpu memory, GB": round(properties.total_memory / 1e9, 1) if properties else None,
        "multiprocessors": properties.multi_processor_count if properties else None,
        "compute capability": f"{properties.major}.{properties.minor}" if properties else None,
        "driver": _answer("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if cuda else None,
        "gpu clock limit, MHz": _answer("nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits")
        if cuda
        else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": _version("triton"),
        "transformers": _version("transformers"),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _answer(*command: str) -> str | None:
    """The first line that a program prints, if there is such a program."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def _commit() -> str | None:
    commit = _answer("git", "rev-parse", "--short", "HEAD")
    changed = _answer("git", "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else f"{commit}, {'not clean' if changed else 'clean'}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
