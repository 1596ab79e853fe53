"""The picture of docs/profiling.md: what a blocking loop, a pipelined one and a planted synchronisation look like.

    python benchmarks/profile_picture.py [docs/images/profile.svg]

Simulated, on the costs of `photon-batch simulate`; a fixed picture, since nothing in it is drawn or timed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from photon.engine.record import Span, StepRecord
from photon.sim.profile import load_profile
from photon.sim.simulate import Simulation, Variant
from photon.sim.workload import Mix

CARD, STREAMS, SHOWN_MS = "b200", 32, 17.0
LANES = ("host", "upload", "compute", "readback")
PANELS: tuple[tuple[str, int, Variant], ...] = (
    ("depth 1, blocking: a gap on compute behind every step, as long as the host's work", 1, "shared"),
    ("depth 2, pipelined: the host works under the next forward, compute has no gap", 2, "shared"),
    (
        "depth 2, one stray synchronisation in finalize: the gaps of depth 1 again",
        2,
        "stray",
    ),
)
COLOURS = {
    "launch, finalize": "#4878a8",
    "host waits": "#d9d9d9",
    "host stuck in the copy": "#8c4bb0",
    "commit": "#c8763c",
    "forward": "#3f8f5b",
    "sampling": "#a3cf8f",
    "copy": "#8a8a8a",
    "compute idle": "#d62728",
}
LEAST_MS = 0.05  # so that a copy of microseconds is seen


def steady(depth: int, variant: Variant) -> list[StepRecord]:
    """A run's records from where only decode steps are left, six of them: as long as the picture and more."""
    simulation = Simulation(load_profile(CARD), [Mix("text", streams=STREAMS)], depth=depth, variant=variant)
    simulation.run(2 * STREAMS)
    records, wanted = simulation.records, 6
    at = next(
        at
        for at in range(len(records) - wanted, -1, -1)
        if all(record.kind == "decode" for record in records[at : at + wanted])
    )
    return records[at : at + wanted]


def spans(record: StepRecord) -> Iterator[tuple[str, str, Span | None]]:
    """(lane, colour, when)."""
    yield "host", "launch, finalize", record.launch
    yield "host", "launch, finalize", record.finalize
    yield "host", "host waits", record.wait
    yield "host", "commit", record.commit
    yield from (("upload", "copy", span) for span in record.uploads)
    yield "compute", "forward", record.forward
    yield "compute", "sampling", record.sample
    yield "readback", "copy", record.copy


def gaps(records: list[StepRecord]) -> list[Span]:
    """Between the end of a step's sampling and the start of the next forward."""
    ends = [(record.sample or record.forward).end for record in records]
    return [Span(end, record.forward.start) for end, record in zip(ends, records[1:], strict=False)]


def stuck(records: list[StepRecord]) -> Iterator[Span]:
    """Of the host, from a finalize to the commit behind it: nothing but the planted wait is in between."""
    for before, record in pairwise(records):
        assert record.finalize is not None
        yield Span(record.finalize.end, before.wait.start)


def draw(out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    plt.rcParams.update({"svg.hashsalt": "profile", "svg.fonttype": "path", "font.size": 9})
    figure, axes = plt.subplots(len(PANELS), 1, figsize=(10, 6.6), sharex=True, layout="constrained")
    for axis, (name, depth, variant) in zip(axes, PANELS, strict=True):
        records = steady(depth, variant)
        zero = records[1].forward.start
        for record in records:
            for lane, colour, span in spans(record):
                if span is not None:
                    bar(axis, lane, COLOURS[colour], span, zero)
        for wait in stuck(records) if variant == "stray" else ():
            bar(axis, "host", COLOURS["host stuck in the copy"], wait, zero)
        idle = gaps(records[1:])
        for gap in gaps(records):
            if gap.seconds > 1e-5:
                bar(axis, "compute", COLOURS["compute idle"], gap, zero)
        period = 1e3 * (records[-1].forward.start - records[1].forward.start) / (len(records) - 2)
        mean = 1e3 * sum(gap.seconds for gap in idle) / len(idle)
        axis.set_title(f"{name}\n{period:.2f} ms a step, compute idle {mean:.2f} ms of it", loc="left", fontsize=9)
        axis.set_yticks(range(len(LANES)), LANES)
        axis.set_ylim(len(LANES) - 0.4, -0.6)
        axis.set_xlim(0, SHOWN_MS)
        axis.tick_params(axis="y", length=0)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[-1].set_xlabel("ms")
    figure.suptitle(
        f"SIMULATED, not measured: {STREAMS} texts at a time on a {CARD} profile", x=0.01, ha="left", fontsize=11
    )
    legend = [Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=110)


def bar(axis: object, lane: str, colour: str, span: Span, zero: float) -> None:
    left, width = 1e3 * (span.start - zero), max(LEAST_MS, 1e3 * span.seconds)
    axis.barh(LANES.index(lane), width, left=left, height=0.82, color=colour, linewidth=0)  # type: ignore[attr-defined]


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "images" / "profile.svg"))
