"""The training's curve from the checkpoint's record: docs/images/training-curve.svg.

python training/plot.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

ROOT = Path(__file__).parents[1]
SEEN = ("kind_right", "token_right", "look_right")
HELD_OUT = ("detect F1 shape", "detect F1 all", "point recall", "count", "colour", "empty")


def plot(curve: list[dict[str, Any]], out: Path) -> None:
    """Above what the training sees, below what held-out scenes say; steps of all gates end to end."""
    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "photon", "svg.fonttype": "none"}
    starts: dict[str, int] = {}
    end = 0
    for entry in curve:
        starts.setdefault(entry["gate"], end)
        end = max(end, starts[entry["gate"]] + entry["step"])
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6.5), sharex=True, layout="constrained")
    for axes, names, held_out in ((above, SEEN, False), (below, HELD_OUT, True)):
        for name in names:
            points = [
                (starts[e["gate"]] + e["step"], e[name]) for e in curve if name in e and ("held out" in e) == held_out
            ]
            if points:
                axes.plot(*zip(*points, strict=True), label=name.replace("_", " "), marker="." if held_out else None)
        for gate, start in starts.items():
            axes.axvline(start, color="0.8", linewidth=1)
            axes.text(start, 1.02, gate)
        axes.set_ylim(0, 1.0)
        axes.legend(loc="lower right", fontsize="small")
    above.set_ylabel("share right, training scenes")
    below.set_ylabel("held-out scenes, greedy")
    below.set_xlabel("steps")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    progress = json.loads((ROOT / "training" / "checkpoint" / "progress.json").read_text())
    plot(progress["curve"], ROOT / "docs" / "images" / "training-curve.svg")
