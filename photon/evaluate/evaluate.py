"""Holds a run's answers against truth: reads both, judges row by row, and makes the report. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from photon.errors import UsageError
from photon.evaluate.average_precision import average_precision, has_pycocotools
from photon.evaluate.figures import figures_of, mean, pooled
from photon.evaluate.join import RowTruth, TruthSource, open_truth
from photon.evaluate.labels import listed, respelled
from photon.evaluate.options import Judging, TruthOptions
from photon.evaluate.report import ObjectsReport, Report, TextReport
from photon.evaluate.scores import ranking
from photon.evaluate.shape import TaskTruth, truths_of
from photon.evaluate.tally import ObjectsTally, TextTally
from photon.evaluate.truth import BoxForm, read_answer
from photon.job.asked import OBJECT_TYPES, TEXT_TYPES, AskedTask
from photon.job.output import RunOutput
from photon.manifest.problems import nearest

Tally: TypeAlias = ObjectsTally | TextTally
_NONE = np.empty(0)


def evaluate(folder: Path, options: TruthOptions, judging: Judging | None = None) -> Report:
    """Judges the answers in ``folder``. Raises ``UsageError`` for truth that is missing or misshapen, with file, column
    and row; ``InputError`` for what cannot be read."""
    judging = judging or Judging()
    output = RunOutput(folder)
    tasks = [task for task in output.tasks if task.type in (*OBJECT_TYPES, *TEXT_TYPES)]
    if not tasks:
        raise UsageError(f"none of the tasks of {output.root} is of a type that eval knows")
    prompts = tuple(dict.fromkeys(column for task in tasks for column in task.columns))
    source = open_truth(output, options, prompts)
    truths = truths_of(source.kind, source.feature, tasks, options.task, source.where)
    judges = [_Judge(truth, source, options, judging) for truth in truths]
    rows = failed = 0
    for row in output.rows(_columns(output, source, [truth.task for truth in truths])):
        rows += 1
        failed += row["status"] != "ok"
        truth = source.of(row)
        for judge in judges:
            judge.take(row, truth)
    judged = [judge.report() for judge in judges if judge.tally.rows.judged]
    if not judged:
        kept = options.file is None
        why = "is null in every row" if kept else "has a value for none of the output's rows"
        advice = "fill it in" if kept else "compare the ids of both"
        raise UsageError(f"{source.where} {why}, so there is nothing to judge; {advice}")
    notes = _notes(output, [report.name for report in judged], options)
    return Report(str(output.root), source.where, judging, rows, failed, tuple(judged), notes)


def _columns(output: RunOutput, source: TruthSource, tasks: Sequence[AskedTask]) -> list[str]:
    """What is read of every output row. Raises ``UsageError`` where a name of an object cannot be filled in."""
    for task in tasks:
        for column in task.columns:
            if column not in source.columns:
                raise UsageError(_unfilled(output, task.name, column))
    return list(dict.fromkeys(["row_id", "status", "image", *source.needs, *(task.name for task in tasks)]))


def _unfilled(output: RunOutput, task: str, column: str) -> str:
    advice = "give files that have it with --truth-file, such as the input itself"
    if column in output.schema.names:
        told = f"the column {column} of {output.root} is the result's own, not the input's"
    else:
        told = f"neither {output.root} nor the truth holds a column {column}"
        advice = f"list it in the manifest's input.keep, or {advice}"
    return f"task {task} asks for {{{column}}}, and {told}, so what was asked of a row cannot be told; {advice}"


class _Judge:
    """One task: finds its truth in each row and tallies the answer."""

    def __init__(self, truth: TaskTruth, source: TruthSource, options: TruthOptions, judging: Judging) -> None:
        self._truth, self._where = truth, source.where
        self._form = BoxForm(options.layout, options.pixels, truth.names)
        task = truth.task
        self.tally: Tally = ObjectsTally(task, judging) if task.type in OBJECT_TYPES else TextTally(task)

    def take(self, row: Mapping[str, Any], truth: RowTruth | None) -> None:
        """``truth`` is None where the row has none."""
        task, tally = self._truth.task, self.tally
        value = None if truth is None else self._truth.pick(truth.cell)
        if truth is None or value is None:
            tally.rows.untold += 1
            return
        try:
            if isinstance(tally, TextTally):
                tally.take(row[task.name], read_answer(value, self._truth.names))
            elif (boxes := self._form.read(value, _size(row))) is None:
                tally.rows.untold += 1
            else:
                tally.take(task.labels(truth.columns), row[task.name], boxes)
        except ValueError as error:
            raise UsageError(f"{self._where}, row {row['row_id']}, task {task.name}: {error}") from None

    def report(self) -> ObjectsReport | TextReport:
        tally, task = self.tally, self._truth.task
        if isinstance(tally, TextTally):
            return TextReport(
                task.name, task.type, tally.rows, tally.right, tally.numbers, tally.off, tally.wordy, _text_notes(tally)
            )
        self._check_labels(tally)
        averages = task.type == "detect" and has_pycocotools()
        classes = {
            label: figures_of(
                made, tally.judging, average_precision(made.true_boxes, made.found_boxes) if averages else None
            )
            for label, made in sorted(tally.classes.items(), key=lambda item: (-item[1].true, item[0]))
        }
        micro, macro = pooled([*classes.values()]), mean([*classes.values()])
        scores = [np.asarray(made.scores) for made in tally.classes.values()]
        right = [np.asarray(made.right) for made in tally.classes.values()]
        ranked = ranking(np.concatenate([_NONE, *scores]), np.concatenate([_NONE, *right]), micro.true)
        return ObjectsReport(
            task.name, task.type, tally.rows, classes, micro, macro, ranked, _object_notes(tally, averages)
        )

    def _check_labels(self, tally: ObjectsTally) -> None:
        """Where not one label was asked for, some are spelled otherwise than in the task, or nothing is there."""
        slips = respelled(tally.ignored, tally.classes) if tally.unmatched else {}
        if slips:
            theirs, mine = listed(tally.ignored), listed(tally.classes)
            alike = listed([f"{label} as {wanted}" for label, wanted in slips.items()])
            raise UsageError(
                f"{self._where}, task {tally.task.name}: the labels of the truth ({theirs}) "
                f"are none of those that were asked for ({mine}); write them alike: {alike}"
            )


def _size(row: Mapping[str, Any]) -> tuple[int, int] | None:
    image = row["image"]
    return None if image is None or not image["width"] or not image["height"] else (image["width"], image["height"])


def _object_notes(tally: ObjectsTally, averages: bool) -> tuple[str, ...]:
    notes = []
    if tally.rows.truncated:
        notes.append(f"{tally.rows.truncated} answers were cut short at max_objects: some truth was out of reach")
    if tally.ignored:
        ((label, _),) = tally.ignored.most_common(1)
        near = "" if label in tally.classes else nearest(label, [*tally.classes])
        hint = f"; {near}" if near.startswith("did you mean") else ""
        told = listed([f"{label} x{count}" for label, count in tally.ignored.most_common()])
        notes.append(f"{tally.ignored.total()} true boxes left out, since nobody asked for them: {told}{hint}")
    if tally.unmatched:
        asked = listed(tally.classes)
        notes.append(f"no true box has a label that was asked for ({asked}), so every answer is a wrong one")
    if tally.flat:
        notes.append(f"{tally.flat} true boxes without area left out")
    if tally.task.type == "detect" and not averages:
        notes.append("no AP: it needs pycocotools; pip install 'photon-batch[eval]'")
    return tuple(notes)


def _text_notes(tally: TextTally) -> tuple[str, ...]:
    notes = []
    if tally.rows.truncated:
        notes.append(f"{tally.rows.truncated} answers were cut short at max_tokens")
    if tally.task.type == "caption":
        notes.append("captions are judged by exact match alone, which says little about free text")
    return tuple(notes)


def _notes(output: RunOutput, judged: Sequence[str], options: TruthOptions) -> tuple[str, ...]:
    notes = []
    rest = [task.name for task in output.tasks if task.name not in judged]
    if rest and options.task is None:
        notes.append(f"no truth for {', '.join(rest)}")
    state = output.record.get("state")
    if state not in (None, "finished"):
        notes.append(f"the run is {str(state).replace('_', ' ')}: only the rows on disk are judged")
    model = output.record.get("model")
    if isinstance(model, Mapping) and model.get("meaningless"):
        notes.append("the model is not a trained one: its answers are meaningless")
    return tuple(notes)
