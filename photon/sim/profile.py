"""What things take on a card: ``profiles.toml`` read, and its free numbers fitted to the published figures.

A decode step of B rows takes overhead + (weights + B x keys and values) / (bandwidth x efficiency) on the device, and
a blocking loop adds housekeeping + B x housekeeping_row between two steps. Both laws are straight lines in B, so two
published points fix all four numbers. Seconds, bytes and operations throughout.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from photon.errors import UsageError

Basis = Literal["published", "estimated"]
CROP_BYTES = 378 * 378 * 3


@dataclass(frozen=True, slots=True)
class Published:
    """Milliseconds a step, for each number of streams."""

    blocking: dict[int, float]
    pipelined: dict[int, float]


@dataclass(frozen=True, slots=True)
class Profile:
    """``basis``: what overhead, efficiency and housekeeping rest on. ``pcie``: bytes a second for crops."""

    name: str
    basis: Basis
    published: Published | None
    weight_bytes: float
    row_bytes: float
    crop_flop: float
    image_flop: float
    token_flop: float
    bandwidth: float
    flops: float
    pcie: float
    compute_efficiency: float
    sampling_share: float
    copy: float
    launch: float
    overhead: float
    efficiency: float
    housekeeping: float
    housekeeping_row: float

    def decode(self, rows: int) -> float:
        """A decode step on the device, forward and sampling."""
        moved = self.weight_bytes + rows * self.row_bytes
        return self.overhead + moved / (self.bandwidth * self.efficiency)

    def forward(self, rows: int) -> float:
        return self.decode(rows) * (1 - self.sampling_share)

    def sampling(self, rows: int) -> float:
        return self.decode(rows) * self.sampling_share

    def prefill(self, tokens: int, rows: int) -> float:
        """A packed forward of ``tokens``; never faster than a decode step of as many rows."""
        return max(self.forward(rows), tokens * self.token_flop / (self.flops * self.compute_efficiency))

    def vision(self, crops: int, images: int) -> float:
        """One batch of crops; as a chain of small kernels never faster than the overhead."""
        work = crops * self.crop_flop + images * self.image_flop
        return max(self.overhead, work / (self.flops * self.compute_efficiency))

    def upload_crops(self, crops: int) -> float:
        return self.copy + crops * CROP_BYTES / self.pcie

    def between(self, rows: int) -> float:
        """What a blocking loop adds to a step of ``rows``: everything from the end of its sampling to the start of the
        next forward."""
        return self.housekeeping + rows * self.housekeeping_row

    def commit(self, rows: int) -> float:
        """``between`` less what is simulated by itself: a read-back, and two launches beside the upload's own time."""
        simulated = self.copy + self.launch + max(self.launch, self.copy)
        return max(0.0, self.between(rows) - simulated)

    def costs(self) -> dict[str, float]:
        """The numbers behind a figure, to be printed beside it. Milliseconds and shares."""
        return {
            "overhead_ms": round(self.overhead * 1e3, 4),
            "efficiency": round(self.efficiency, 4),
            "housekeeping_ms": round(self.housekeeping * 1e3, 4),
            "housekeeping_row_ms": round(self.housekeeping_row * 1e3, 5),
            "compute_efficiency": self.compute_efficiency,
            "sampling_share": self.sampling_share,
            "copy_ms": round(self.copy * 1e3, 4),
            "launch_ms": round(self.launch * 1e3, 4),
        }


def _file() -> dict[str, Any]:
    return tomllib.loads(resources.files("photon.sim").joinpath("profiles.toml").read_text(encoding="utf-8"))


def profile_names() -> list[str]:
    return list(_file()["card"])


def load_profile(name: str) -> Profile:
    """The card's profile. Raises ``UsageError`` for a name that is not in the file."""
    file = _file()
    cards = file["card"]
    if name not in cards:
        near = difflib.get_close_matches(name.lower(), cards, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(cards)}"
        raise UsageError(f"no profile {name!r}; {hint}")
    card, model, common = cards[name], file["model"], file["common"]
    moved = (model["weight_gb"] * 1e9, model["row_gb"] * 1e9, card["bandwidth_tb"] * 1e12)
    published = None
    if "published" in card:
        given = card["published"]
        published = Published(*(dict(zip(given["streams"], given[key], strict=True)) for key in _BOTH))
        fitted = _fit(published, given["calibrate_on"], *moved)
    else:
        given = card["estimated"]
        fitted = (given["overhead_ms"] / 1e3, given["efficiency"], *(given[key] / 1e3 for key in _HOUSEKEEPING))
    overhead, efficiency, housekeeping, housekeeping_row = fitted
    return Profile(
        name=name,
        basis="estimated" if published is None else "published",
        published=published,
        weight_bytes=moved[0],
        row_bytes=moved[1],
        crop_flop=model["crop_tflop"] * 1e12,
        image_flop=model["image_tflop"] * 1e12,
        token_flop=model["token_tflop"] * 1e12,
        bandwidth=moved[2],
        flops=card["tflops"] * 1e12,
        pcie=card["pcie_gb"] * 1e9,
        compute_efficiency=common["compute_efficiency"],
        sampling_share=common["sampling_share"],
        copy=common["copy_us"] / 1e6,
        launch=common["launch_us"] / 1e6,
        overhead=overhead,
        efficiency=efficiency,
        housekeeping=housekeeping,
        housekeeping_row=housekeeping_row,
    )


_BOTH = ("blocking", "pipelined")
_HOUSEKEEPING = ("housekeeping_ms", "housekeeping_row_ms")


def _fit(
    published: Published, points: list[int], weight_bytes: float, row_bytes: float, bandwidth: float
) -> tuple[float, float, float, float]:
    """(overhead, efficiency, housekeeping, housekeeping a row) from the two ``points``.

    A pipelined step is taken for the device's time, its idle being published as below 0.05 ms; what a blocking step
    takes beyond that is housekeeping.
    """
    one, many = points
    device = [published.pipelined[at] / 1e3 for at in points]
    extra = [published.blocking[at] / 1e3 - there for at, there in zip(points, device, strict=True)]
    device_row, extra_row = ((y[1] - y[0]) / (many - one) for y in (device, extra))
    efficiency = row_bytes / (bandwidth * device_row)
    overhead = device[0] - one * device_row - weight_bytes / (bandwidth * efficiency)
    return overhead, efficiency, extra[0] - one * extra_row, extra_row
