"""What a run's steps come to, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Statistics:
    """``wall_seconds`` of the compute stream, from the first forward's start to the last operation's end, and
    ``busy_seconds`` of them; ``steps`` by kind.

    ``rows`` counts a sequence once for each step that it was in, ``zombie_rows`` where that was one too many;
    ``zombie_seconds`` is those rows' share of their steps' compute time. ``requests_on_images`` shared ``prefixes``.

    With graphs, ``graph_replays`` operations were replays, and ``graph_fallbacks`` say what ran without one and how
    often.
    """

    steps: dict[str, int] = field(default_factory=dict)
    wall_seconds: float = 0.0
    busy_seconds: float = 0.0
    rows: int = 0
    decode_rows: int = 0
    zombie_rows: int = 0
    zombie_seconds: float = 0.0
    requests_on_images: int = 0
    prefixes: int = 0
    graph_replays: int = 0
    graph_fallbacks: dict[str, int] = field(default_factory=dict)

    @property
    def busy_share(self) -> float:
        """Of the compute stream's time."""
        return _ratio(self.busy_seconds, self.wall_seconds)

    @property
    def idle_ms_per_step(self) -> float:
        return 1e3 * _ratio(self.wall_seconds - self.busy_seconds, sum(self.steps.values()))

    @property
    def zombie_share(self) -> float:
        """Of all rows."""
        return _ratio(self.zombie_rows, self.rows)

    @property
    def requests_per_prefix(self) -> float:
        """How many questions an encoded image answered: the reuse of prefixes."""
        return _ratio(self.requests_on_images, self.prefixes)

    @property
    def rows_per_decode_step(self) -> float:
        return _ratio(self.decode_rows, self.steps.get("decode", 0))

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "steps": dict(self.steps),
            "wall_seconds": round(self.wall_seconds, 6),
            "busy_seconds": round(self.busy_seconds, 6),
            "busy_share": round(self.busy_share, 6),
            "idle_ms_per_step": round(self.idle_ms_per_step, 6),
            "rows_per_decode_step": round(self.rows_per_decode_step, 3),
            "zombie_rows": self.zombie_rows,
            "zombie_share": round(self.zombie_share, 6),
            "zombie_seconds": round(self.zombie_seconds, 6),
            "requests_on_images": self.requests_on_images,
            "prefixes": self.prefixes,
            "requests_per_prefix": round(self.requests_per_prefix, 3),
            "graph_replays": self.graph_replays,
            "graph_fallbacks": dict(self.graph_fallbacks),
        }

    def text(self) -> str:
        """Two lines for a person; a third one with graphs."""
        steps = ", ".join(f"{count:,} {kind}" for kind, count in self.steps.items() if count)
        return (
            f"device busy {self.busy_share:.1%}, idle {self.idle_ms_per_step:.3g} ms a step; steps: {steps} of "
            f"{self.rows_per_decode_step:.1f} rows\n"
            f"{self.requests_per_prefix:.1f} requests to an encoded image; zombies: {self.zombie_rows:,} rows "
            f"({self.zombie_share:.1%}), {self.zombie_seconds:.2f} s of the device{self._graphs()}"
        )

    def _graphs(self) -> str:
        if not (self.graph_replays or self.graph_fallbacks):
            return ""
        without = ", ".join(f"{what} {count:,} times" for what, count in self.graph_fallbacks.items()) or "nothing"
        return f"\n{self.graph_replays:,} replays of graphs; without one: {without}"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
