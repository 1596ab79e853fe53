"""A report as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from photon.evaluate.figures import Figures
from photon.evaluate.options import Judging
from photon.evaluate.report import ObjectsReport, Report, TextReport

_MOST = 40  # classes shown; JSON has all
_WIDEST = 28
_COUNTS = ("asked", "true", "found", "right")
_DETECT = ("precision", "recall", "f1", "ap50", "ap", "count_error", "empty_right")
_POINT = ("precision", "recall", "f1", "count_error", "empty_right")
_TITLES = {"f1": "F1", "ap50": "AP50", "ap": "AP", "count_error": "count err", "empty_right": "empty ok"}


def table(report: Report) -> str:
    """Everything but curves and bins, which are for ``chart`` and JSON."""
    judging = report.judging
    threshold = f"scores from {judging.min_score:g} on (AP: every score)" if judging.min_score else "every score"
    lines = [
        f"{report.output} against {report.truth}",
        f"{report.rows:,} rows, {report.failed:,} failed; a box is right from IoU {judging.iou:g} on; {threshold}",
    ]
    for task in report.tasks:
        lines += ["", *(_objects(task) if isinstance(task, ObjectsReport) else _text(task))]
    return "\n".join([*lines, *([""] if report.notes else []), *_notes(report.notes, "")])


def _objects(task: ObjectsReport) -> list[str]:
    columns = _DETECT if task.type == "detect" else _POINT
    titles = {**_TITLES, "precision": "hit rate"} if task.type == "point" else _TITLES
    shown = list(task.classes.items())[:_MOST]
    width = min(_WIDEST, max(len(label) for label in (*task.classes, "mean (macro)")))
    head = "".join(f"{name:>8}" for name in _COUNTS) + "".join(f"{titles.get(name, name):>10}" for name in columns)
    lines = [_head(task, "whose objects count as missed"), f"  {'class':<{width}}{head}"]
    lines += [f"  {_cut(label, width)}{_cells(figures, columns)}" for label, figures in shown]
    if len(task.classes) > _MOST:
        lines.append(f"  ... and {len(task.classes) - _MOST} more classes, in the JSON")
    lines.append(f"  {'all (micro)':<{width}}{_cells(task.micro, columns)}")
    lines.append(f"  {'mean (macro)':<{width}}{' ' * 8 * len(_COUNTS)}{_means(task.macro, columns)}")
    return [*lines, *_ranking(task), *_notes(task.notes, "  ")]


def _ranking(task: ObjectsReport) -> list[str]:
    told = []
    if task.ranking.order is not None:
        told.append(f"a right one scores above a wrong one {task.ranking.order:.0%} of the time")
    best = task.ranking.best
    if best is not None and best.f1 > 0:
        told.append(f"F1 is best here, {best.f1:.3f}, with --min-score {_threshold(best.score):g}")
    return [f"  scores: {'; '.join(told)}"] if told else []


def _threshold(score: float) -> float:
    """Four digits that still let an answer with this score pass."""
    near = round(score, 4)
    return near if Judging(min_score=near).counts(score) else math.floor(score * 1e4) / 1e4


def _text(task: TextReport) -> list[str]:
    lines = [_head(task, "which count as wrong"), f"  exact match  {task.exact_match:.3f} ({task.right:,} right)"]
    if task.numbers or task.wordy:
        error = "-" if task.count_error is None else f"{task.count_error:.3f}"
        wordy = f", {task.wordy:,} answers without a number left out" if task.wordy else ""
        lines.append(f"  count error  {error} (mean over {task.numbers:,} answers in numbers{wordy})")
    return [*lines, *_notes(task.notes, "  ")]


def _head(task: ObjectsReport | TextReport, fate: str) -> str:
    rows = task.rows
    failed = f", {rows.failed:,} failed, {fate}" if rows.failed else ""
    untold = f", {rows.untold:,} without truth left out" if rows.untold else ""
    return f"{task.name} ({task.type}): {rows.judged:,} rows with truth{failed}{untold}"


def _cells(figures: Figures, columns: tuple[str, ...]) -> str:
    counts = "".join(f" {getattr(figures, name):>7,}" for name in _COUNTS)
    return counts + "".join(_number(getattr(figures, name)) for name in columns)


def _means(macro: Mapping[str, float | None], columns: tuple[str, ...]) -> str:
    return "".join(_number(macro[name]) for name in columns)


def _number(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.3f}':>10}"


def _cut(label: str, width: int) -> str:
    label = label if len(label) <= width else f"{label[: width - 1]}…"
    return f"{label:<{width}}"


def _notes(notes: tuple[str, ...], indent: str) -> list[str]:
    return [f"{indent}NOTE: {note}" for note in notes]
