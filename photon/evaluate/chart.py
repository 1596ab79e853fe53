"""A report as a picture: for each detect and point task what a threshold does, whether scores rank, and F1 by class;
for texts the exact match."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from photon.errors import OutputError, UsageError
from photon.evaluate.report import ObjectsReport, Report, TextReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")
_MOST = 15  # bars; the classes with the most truth
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a $ in a label is a dollar
    "svg.hashsalt": "photon",  # the same report gives the same file
}
_BLUE, _ORANGE, _GREEN, _GREY = "#4878a8", "#c8763c", "#3f8f5b", "#b8b8b8"


def check_chart(path: Path) -> None:
    """Raises ``UsageError`` before any work where ``write_chart`` could not draw to ``path``."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"a picture is a .png or a .svg file, not {path}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("--picture needs matplotlib; pip install 'photon-batch[eval]'") from None


def write_chart(report: Report, path: Path) -> None:
    """Raises ``OutputError`` where the file cannot be written."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    objects = [task for task in report.tasks if isinstance(task, ObjectsReport)]
    texts = [task for task in report.tasks if isinstance(task, TextReport)]
    height = 3.6 * len(objects) + (0.9 + 0.35 * len(texts) if texts else 0)
    # Of its own, not pyplot's: no state that outlives the call, no window.
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a label in a script that the font lacks is drawn as boxes
        figure = Figure(figsize=(12, max(height, 1.6) + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(f"{report.output}, {report.rows:,} rows, IoU {report.judging.iou:g}", fontsize=11)
        strips: Any = figure.subfigures(
            len(objects) + bool(texts), 1, squeeze=False,
            height_ratios=[3.6] * len(objects) + ([0.9 + 0.35 * len(texts)] if texts else []),
        )  # fmt: skip
        for strip, task in zip(strips[:, 0], objects, strict=False):
            strip.suptitle(f"{task.name} ({task.type})", x=0.01, ha="left", fontsize=10, weight="bold")
            left, middle, right = strip.subplots(1, 3)
            _thresholds(left, task, report.judging.min_score)
            _reliability(middle, task)
            _bars(right, {label: figures.f1 for label, figures in [*task.classes.items()][:_MOST]}, "F1", fewest=5)
        if texts:
            _bars(strips[-1, 0].subplots(), {task.name: task.exact_match for task in texts}, "exact match")
        try:
            figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _thresholds(axes: Axes, task: ObjectsReport, min_score: float) -> None:
    curve = task.ranking.curve
    scores = [at.score for at in curve]
    precision = "hit rate" if task.type == "point" else "precision"
    dots: Any = {"marker": "o", "markersize": 3} if len(curve) <= 20 else {}  # one score alone draws no line
    axes.plot(scores, [at.precision for at in curve], color=_BLUE, label=precision, **dots)
    if task.micro.true:
        axes.plot(scores, [at.recall or 0.0 for at in curve], color=_ORANGE, label="recall", **dots)
        axes.plot(scores, [at.f1 for at in curve], color=_GREEN, label="F1", **dots)
    if min_score:
        axes.axvline(min_score, color=_GREY, linestyle="--", label="--min-score")
    axes.set(title="answers from a threshold on", xlabel="threshold", xlim=(0, 1), ylim=(0, 1.03))
    axes.legend(frameon=False, loc="best")


def _reliability(axes: Axes, task: ObjectsReport) -> None:
    bins = [made for made in task.ranking.bins if made.precision is not None]
    axes.plot((0, 1), (0, 1), color=_GREY, linestyle="--", linewidth=1, label="calibrated")
    axes.bar(
        [(made.low + made.high) / 2 for made in bins], [made.precision or 0.0 for made in bins],
        width=0.09, color=_BLUE, label="right",
    )  # fmt: skip
    for made in bins:
        axes.annotate(f"{made.found}", ((made.low + made.high) / 2, made.precision or 0.0), (0, 2),
                      textcoords="offset points", ha="center", fontsize=7)  # fmt: skip
    order = task.ranking.order
    told = "" if order is None else f" (right above wrong: {order:.0%})"
    axes.set(title=f"share right by score{told}", xlabel="score (on the bars: answers)", xlim=(0, 1), ylim=(0, 1.1))
    axes.legend(frameon=False, loc="best")


def _bars(axes: Axes, values: dict[str, float | None], what: str, fewest: int = 1) -> None:
    """``fewest``: bars to leave room for, so that a lone one is no wall."""
    names = [label if len(label) <= 24 else f"{label[:23]}…" for label in values]
    places = range(len(names))
    axes.barh(places, [value or 0.0 for value in values.values()], color=_GREEN, height=0.7)
    for place, value in zip(places, values.values(), strict=True):
        axes.text((value or 0.0) + 0.01, place, "-" if value is None else f"{value:.2f}", va="center", fontsize=8)
    axes.set_yticks(places, names)
    axes.set(title=what, xlim=(0, 1.1), ylim=(max(len(names), fewest) - 0.4, -0.6))
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
