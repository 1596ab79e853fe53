"""The Triton kernels: run by Triton's interpreter on a CPU (``triton_cases``), compiled for GPUs that are not there.

What a GPU makes of them is tested where there is one, by the same cases; how fast they are is not tested at all.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from photon.errors import UsageError
from photon.kernels.flat import FlatLayout

pytest.importorskip("triton", reason="Triton is not installed")
import triton
from triton.backends.compiler import GPUTarget

from photon.kernels import triton_paged
from photon.kernels.triton_paged import Launch, launches, split_count

ROOT = Path(__file__).parents[2]
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
SHARED_MEMORY = 99 * 1024  # what a block may have on compute capability 8.6, the least of the three
BFLOAT16, FLOAT16, FLOAT32 = torch.bfloat16, torch.float16, torch.float32

needs_compiler = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1" or not (TOOLS / "ptxas").exists(),
    reason="TRITON_INTERPRET is set, or this build of Triton brings no ptxas: nothing is compiled",
)


def run_cases(which: str, interpret: bool) -> None:
    """``triton_cases`` in a process of its own, since the interpreter is chosen when Triton is imported."""
    command = [sys.executable, "-m", "pytest", "tests/kernels/triton_cases.py", "-m", which, "-p", "no:cacheprovider"]
    environment = {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert re.search(r"^\d+ passed(, \d+ deselected)? in", done.stdout, re.MULTILINE), done.stdout[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["not slow", "slow"])
def test_in_the_interpreter(which: str) -> None:
    run_cases(which, interpret=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_on_the_gpu() -> None:
    run_cases("slow or not slow", interpret=False)


def planned(
    dtype: torch.dtype, *, width: int = 1, group: int = 1, dim: int = 64, rows: int = 2, splits: int | None = None
) -> list[Launch]:
    """What would be launched for tensors of these sizes, which are not there."""

    def of(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.empty(*shape, dtype=dtype, device="meta")

    layout = FlatLayout(of(rows * width), of(rows * width), of(rows, width), of(rows), of(rows, 46), of(rows, 8))
    q, pool = of(rows, width, 8 * group, dim, dtype=dtype), of(8, 100, 16, dim, dtype=dtype)
    return launches(q, pool, pool, layout, torch.empty_like(q), splits)


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have Triton compile, as it does before a launch, for a GPU of a compute capability that need not be there."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))

    def pretend(capability: int) -> None:
        device = SimpleNamespace(
            get_current_device=lambda: 1000 + capability,  # builds are kept by device
            get_current_stream=lambda _: 0,
            get_current_target=lambda: GPUTarget("cuda", capability, 32),
        )
        monkeypatch.setattr(triton.runtime.jit, "driver", SimpleNamespace(active=device))

    return pretend


def compiled(launch: Launch) -> Any:
    return launch.kernel.warmup(*launch.arguments, grid=launch.grid, **launch.options)


def stack_bytes(cubin: bytes, folder: Path) -> int:
    """Bytes a thread spills to memory, as the toolchain's own tool tells."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    command = [str(TOOLS / "cuobjdump"), "-res-usage", str(path)]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"STACK:(\d+)", report)[0])


# Decode, split and joined, and prefill, for three generations of GPUs.
BUILDS = [
    *((capability, BFLOAT16, width) for capability in (80, 86, 90) for width in (1, 40)),
    *((capability, dtype, 1) for capability in (80, 86, 90) for dtype in (FLOAT16, FLOAT32)),
    (86, FLOAT32, 40),
]
EVERYDAY = (90, BFLOAT16, 1)


@needs_compiler
@pytest.mark.parametrize(
    ("capability", "dtype", "width"),
    [
        pytest.param(
            *build, id="sm_{}, {}, width {}".format(*build), marks=() if build == EVERYDAY else pytest.mark.slow
        )
        for build in BUILDS
    ],
)
def test_compiles(capability: int, dtype: torch.dtype, width: int, gpu: Callable[[int], None], tmp_path: Path) -> None:
    """To machine code that spills nothing: 16-bit products on tensor cores, float32 without TF32."""
    gpu(capability)
    group, splits = (1, 4) if width == 1 else (2, 1)
    attend, *join = planned(dtype, width=width, group=group, splits=splits)
    kernel = compiled(attend)
    ptx = kernel.asm["ptx"]
    assert f".target sm_{capability}" in ptx
    assert ("mma" in ptx) == (dtype != torch.float32)
    assert "tf32" not in ptx
    assert kernel.metadata.shared <= SHARED_MEMORY
    assert stack_bytes(kernel.asm["cubin"], tmp_path) == 0
    assert len(join) == (splits > 1)
    for launch in join:
        assert stack_bytes(compiled(launch).asm["cubin"], tmp_path) == 0


@needs_compiler
@pytest.mark.slow
def test_steps_of_other_sizes_need_no_other_build(gpu: Callable[[int], None]) -> None:
    """Compiling takes seconds, and must not happen in the middle of a run: neither how many rows, positions and pages a
    step has nor where its staged tables happen to lie makes a difference."""
    gpu(90)
    pool, kernels = torch.zeros(8, 4, 16, 32, dtype=BFLOAT16), set()
    for rows, width, prefix, suffix, shift in ((2, 1, 46, 8, 0), (1, 1, 1, 1, 1), (3, 16, 48, 16, 1), (7, 5, 0, 3, 3)):
        tables = []
        for shape in ((rows, width), (rows,), (rows, prefix), (rows, suffix)):
            count = math.prod(shape)
            tables.append(torch.zeros(count + shift, dtype=torch.int64)[shift:].view(shape))
        layout = FlatLayout(*[torch.empty(0)] * 2, *tables)
        q = torch.zeros(rows, width, 8, 32, dtype=BFLOAT16)
        attend, join = launches(q, pool, pool, layout, q, splits=3)
        kernels.add((compiled(attend).hash, compiled(join).hash))
    assert len(kernels) == 1


def test_launches_do_not_depend_on_what_the_layout_holds() -> None:
    """Meta tensors hold nothing: planning that looked at a length would raise."""
    (one,) = planned(torch.bfloat16, rows=64)
    assert one.grid == (64, 8, 1)
    two = planned(torch.bfloat16, rows=2, group=4)
    assert [launch.grid for launch in two] == [(2, 8, 6), (2 * 32,)]


@pytest.mark.parametrize(
    ("capacity", "programs", "splits"),
    [
        (864, 2048, 1),  # enough to do without
        (864, 32, 6),  # parts of at least 128
        (127, 1, 1),
        (4096, 1, 16),
        (4096, 300, 2),
        (0, 8, 1),
    ],
)
def test_split_count(capacity: int, programs: int, splits: int) -> None:
    assert split_count(capacity, programs) == splits


def test_what_the_kernels_cannot_take_is_refused() -> None:
    with pytest.raises(UsageError, match="float64"):
        planned(torch.float64)
    with pytest.raises(UsageError, match="head dims up to 64, not 80"):
        planned(torch.float32, dim=80)
    q = torch.empty(1, 1, 3, 16)
    layout = FlatLayout(*[torch.empty(1, 1, dtype=torch.int64)] * 6)
    pool = torch.empty(2, 4, 16, 16)
    with pytest.raises(UsageError, match="3 heads are not a multiple of 2"):
        launches(q, pool, pool, layout, q)
    with pytest.raises(UsageError, match="one dtype"):
        launches(q[:, :, :2], pool, pool.half(), layout, q)
    with pytest.raises(UsageError, match="contiguous"):
        launches(q[:, :, :2], pool[:, ::2], pool[:, ::2], layout, q)


def test_bfloat16_is_only_taken_apart_in_the_interpreter() -> None:
    assert not triton_paged._interpreted()
    assert not planned(torch.bfloat16)[0].options["UPCAST"]
