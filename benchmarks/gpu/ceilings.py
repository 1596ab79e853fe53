"""Section 3: what this card does at best, a copy and a matrix product, and the floors that follow from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch

from benchmarks.gpu import model
from benchmarks.gpu.floors import Floors
from benchmarks.gpu.rows import Day, Figure, Row
from photon.bench.bandwidth import copy_bandwidth

_REPEATS = 7
ROWS, CROPS = (1, 8, 32, 64), (1, 2, 9, 13)


def section(day: Day) -> Iterator[Row]:
    device = torch.device(day.device)
    dtype = torch.bfloat16 if day.cuda else torch.float32
    yield day.attempt(
        "copy on the device, bytes read and written",
        lambda: {"bandwidth": Figure(copy_bandwidth(device) / 1e9, "GB/s")},
    )
    side = 8192 if day.cuda else 512
    name = str(dtype).removeprefix("torch.")
    yield day.attempt(
        f"matrix product {name}, {side} x {side} x {side}",
        lambda: {"rate": Figure(_product(device, dtype, side) / 1e12, "TFLOP/s")},
    )


def floor_section(day: Day) -> Iterator[Row]:
    """The floors for this card: milliseconds and requests per second that it cannot beat."""
    floors = of_card(day)
    if floors is None:
        yield Row("floors", "skipped", "the ceilings were not measured")
        return
    for crops in CROPS:
        yield Row(f"floor: vision of {crops} crops", figures={"least": Figure(1e3 * floors.vision(crops), "ms")})
    yield Row("floor: prefill of 740 tokens", figures={"least": Figure(1e3 * floors.prefill(740), "ms")})
    for rows in ROWS:
        yield Row(f"floor: decode step of {rows} rows", figures={"least": Figure(1e3 * floors.decode(rows), "ms")})
    for crops in CROPS:
        most = 1 / floors.detect(crops=crops, rows=64)
        yield Row(f"floor: detect, 3 objects, {crops} crops, 64 rows", figures={"most": Figure(most, "requests/s")})


def of_card(day: Day) -> Floors | None:
    """None where the ceilings were not measured."""
    bandwidth, rate = day.figure("ceilings", "bandwidth"), day.figure("ceilings", "rate")
    if not bandwidth or not rate:
        return None
    return Floors(model.config(day.smoke), bandwidth * 1e9, rate * 1e12, itemsize=2 if day.cuda else 4)


def _product(device: torch.device, dtype: torch.dtype, side: int) -> float:
    """Operations per second, best of a few runs of about a tenth of a second."""
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty(side, side, device=device, dtype=dtype)
    once = _seconds(lambda: torch.mm(a, b, out=out), device)
    times = max(1, min(50, int(0.1 / once)))

    def run() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    return times * 2 * side**3 / min(_seconds(run, device) for _ in range(_REPEATS))


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
