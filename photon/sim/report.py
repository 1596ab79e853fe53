"""Blocking and pipelined runs of one mix side by side, for people and as JSON. Always labelled as simulated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from photon.errors import UsageError
from photon.sim.profile import Profile
from photon.sim.simulate import Figures, measure
from photon.sim.workload import Mix

INJECTIONS = ("sync-mask-upload",)
_BASIS = {
    "published": "costs fitted to published figures at 1 and 32 streams",
    "estimated": "costs estimated; nothing is published for this card",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``decode_only``: pipelining that stops for prefill and vision; None for text, which has little of either."""

    profile: Profile
    mix: Mix
    inject: str | None
    blocking: Figures
    pipelined: Figures
    decode_only: Figures | None

    @property
    def speedup(self) -> float | None:
        """Of a decode step, as published: T_block / T_pipe."""
        if self.blocking.ms_per_step is None or self.pipelined.ms_per_step is None:
            return None
        return self.blocking.ms_per_step / self.pipelined.ms_per_step

    @property
    def law(self) -> float | None:
        """What the speed-up should make of the requests per second: T_block / T_pipe x (1 - z)."""
        return None if self.speedup is None else self.speedup * (1 - self.pipelined.zombie_share)

    @property
    def throughput(self) -> float:
        return self.pipelined.requests_per_s / self.blocking.requests_per_s

    @property
    def throughput_decode_only(self) -> float | None:
        if self.decode_only is None:
            return None
        return self.decode_only.requests_per_s / self.blocking.requests_per_s

    def as_dict(self) -> dict[str, Any]:
        published = self.profile.published
        streams = self.mix.streams
        return {
            "simulated": True,
            "profile": self.profile.name,
            "basis": self.profile.basis,
            "mix": asdict(self.mix),
            "inject": self.inject,
            "blocking_ms_per_step": self.blocking.ms_per_step,
            "pipelined_ms_per_step": self.pipelined.ms_per_step,
            "speedup": self.speedup,
            "zombie_share": self.pipelined.zombie_share,
            "law": self.law,
            "blocking_idle_ms_per_step": self.blocking.idle_ms_per_step,
            "idle_ms_per_step": self.pipelined.idle_ms_per_step,
            "blocking_requests_per_s": self.blocking.requests_per_s,
            "requests_per_s": self.pipelined.requests_per_s,
            "throughput_gain": self.throughput,
            "throughput_gain_decode_only": self.throughput_decode_only,
            "published_blocking_ms_per_step": published.blocking.get(streams) if published else None,
            "published_pipelined_ms_per_step": published.pipelined.get(streams) if published else None,
            "costs": self.profile.costs(),
        }

    def text(self) -> str:
        a, b = self.blocking, self.pipelined
        lines = [
            f"simulated: {self.mix}, profile {self.profile.name} ({_BASIS[self.profile.basis]})",
            *([f"injected: {self.inject}"] if self.inject else []),
            f"{'':24}{'blocking':>10}{'pipelined':>11}",
            _line("ms per decode step", a.ms_per_step, b.ms_per_step, self.speedup),
            _line("idle ms per step", a.idle_ms_per_step, b.idle_ms_per_step),
            _line("zombie rows, %", 100 * a.zombie_share, 100 * b.zombie_share),
            _line("requests per s", a.requests_per_s, b.requests_per_s, self.throughput),
        ]
        if self.decode_only is not None:
            lines.append(_line("  decode alone", None, self.decode_only.requests_per_s, self.throughput_decode_only))
        if self.mix.skill == "text":
            lines.append(f"the law T_block / T_pipe x (1 - zombies) says{_gain(self.law)}")
        costs = ", ".join(f"{name} {value:g}" for name, value in self.profile.costs().items())
        return "\n".join([*lines, f"costs: {costs}"])


def _line(name: str, blocking: float | None, pipelined: float | None, gain: float | None = None) -> str:
    cells = [f"{value:.3f}" if value is not None else "-" for value in (blocking, pipelined)]
    return f"{name:24}{cells[0]:>10}{cells[1]:>11}{_gain(gain)}"


def _gain(ratio: float | None) -> str:
    return "" if ratio is None else f"  {100 * (ratio - 1):+.1f} %"


def compare(profile: Profile, mix: Mix, *, inject: str | None = None) -> Comparison:
    """Depth 1 and depth 2 of the same loop on the same mix. ``inject`` spoils depth 2 in a known way; raises
    ``UsageError`` for one that is not known."""
    if inject not in (None, *INJECTIONS):
        raise UsageError(f"inject must be {' or '.join(INJECTIONS)}, not {inject!r}")
    return Comparison(
        profile,
        mix,
        inject,
        blocking=measure(profile, mix, depth=1),
        pipelined=measure(profile, mix, depth=2, variant="stray" if inject else "shared"),
        decode_only=None if mix.skill == "text" else measure(profile, mix, depth=2, variant="decode-only"),
    )
