"""The figures of ``bench decode``, for people and as JSON. Every number says what it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One way of decoding; ``check_every`` is None for the plain loop. ``status``: ok, skipped or failed, and ``why``.
    Figures are None without ok.

    Rates are of the steps after the first token. ``surplus_ms``: what a text pays at its end on average, when its last
    token may fall anywhere between two looks. ``gb_per_s``: bytes of weights that the steps read, per second, and
    ``of_bandwidth`` their share of what a copy moves.
    """

    mode: str
    check_every: int | None = None
    status: str = "ok"
    why: str | None = None
    tokens_per_s: float | None = None
    ms_per_step: float | None = None
    speedup: float | None = None
    same_tokens: bool | None = None
    looks: int | None = None
    surplus_ms: float | None = None
    gb_per_s: float | None = None
    of_bandwidth: float | None = None

    def line(self) -> str:
        name = self.mode if self.check_every is None else f"{self.mode}, look every {self.check_every}"
        if self.status != "ok":
            return f"{name:24}{self.status}: {self.why}"
        same = "yes" if self.same_tokens else "NO"
        return (
            f"{name:24}{self.tokens_per_s:10.1f}{self.ms_per_step:10.3f}{self.speedup:9.2f}{same:>8}{self.looks:7}"
            f"{self.surplus_ms:12.2f}{self.gb_per_s:8.2f}{100 * (self.of_bandwidth or 0):8.1f} %"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """``about``: what was measured, where and under which conditions. Figures of ``rows`` are medians."""

    about: dict[str, Any]
    rows: list[Row]

    def as_dict(self) -> dict[str, Any]:
        return {"measured": True, **self.about, "rows": [asdict(row) for row in self.rows]}

    def text(self) -> str:
        a = self.about
        head = (
            f"{'':24}{'tokens/s':>10}{'ms/step':>10}{'x plain':>9}{'same':>8}{'looks':>7}{'surplus, ms':>12}{'GB/s':>8}"
            f"{'of copy':>10}"
        )
        return "\n".join(
            (
                f"measured: model {a['model']}, {a['dtype']} on {a['device']}, {a['sampling']}; "
                f"{a['prompt_positions']} positions of prompt, {a['tokens']} tokens; median of {a['repeats']} runs",
                f"machine: {a['processor']}, {a['threads']} of torch's threads, torch {a['torch']}, load "
                f"{a['load_before']:.1f} before and {a['load_after']:.1f} after (on {a['cores']} cores)",
                head,
                *(row.line() for row in self.rows),
                f"first token of the plain loop, picture's encoding not counted: {a['first_token_ms']:.1f} ms",
                f"a step reads {a['weight_bytes'] / 1e6:.2f} MB of weights (GB/s counts these alone) and attends over "
                f"{a['cache_bytes'] / 1e6:.2f} MB of cache, {a['capacity']} positions (the plain loop: what is filled)",
                f"a copy moves {a['copy_gb_per_s']:.2f} GB/s here, read and written; at that rate the weights take "
                f"{a['floor_ms_per_step']:.3f} ms a step",
                "looks: times that the host waited for tokens; surplus: mean cost of steps past the end of a text",
            )
        )
