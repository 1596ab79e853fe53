"""Counts over a run's rows, batch by batch, in bounded memory: rows, failures, and what each task came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from photon.job.asked import AskedTask
from photon.report.columns import Answers, Found

#: Bars of a histogram of scores.
BINS = 20
_NAMES = 1000  # labels or texts that are counted by name
_LONGEST = 200  # characters of a name


@dataclass(slots=True)
class Named:
    """How often a label or text came; ``total`` is the sum of its scores."""

    count: int = 0
    total: float = 0.0


@dataclass(slots=True)
class Names:
    """Counts by name, exact for each of the first thousand; ``others`` counts what came under still other names."""

    by_name: dict[str, Named] = field(default_factory=dict)
    others: int = 0

    def add(self, name: str, count: int, total: float = 0.0) -> None:
        name = name[:_LONGEST]
        if name not in self.by_name and len(self.by_name) == _NAMES:
            self.others += count
            return
        named = self.by_name.setdefault(name, Named())
        named.count += count
        named.total += total

    def commonest(self, most: int) -> list[tuple[str, Named]]:
        """The most frequent first; those that are equally frequent in the order in which they came."""
        return sorted(self.by_name.items(), key=lambda item: -item[1].count)[:most]


@dataclass(slots=True)
class TaskTally:
    """``names`` are labels, or the answers of a text task; ``empty`` rows were answered and hold nothing."""

    type: str
    statuses: Counter[str] = field(default_factory=Counter)
    finishes: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    tokens: int = 0
    found: int = 0
    empty: int = 0
    names: Names = field(default_factory=Names)
    scores: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def count(self, answers: Answers) -> None:
        _count(self.statuses, answers.statuses)
        _count(self.finishes, answers.finishes)
        self.truncated += int(answers.truncated.sum())
        self.tokens += answers.tokens
        if answers.found is not None:
            self._count_found(answers.found)
            self.empty += _answered(answers) - len(np.unique(answers.found.rows))
        elif answers.texts is not None:
            self._count_texts(answers.texts)

    def _count_found(self, found: Found) -> None:
        self.found += len(found.rows)
        self.scores += np.histogram(found.scores, BINS, (0.0, 1.0))[0]
        table = pa.table({"label": found.labels, "score": found.scores})
        summed = table.group_by("label", use_threads=False).aggregate([("score", "count"), ("score", "sum")])
        for row in summed.to_pylist():
            self.names.add(row["label"], row["score_count"], row["score_sum"])

    def _count_texts(self, texts: pa.Array) -> None:
        for row in pc.value_counts(pc.utf8_trim_whitespace(texts.drop_null())).to_pylist():
            if row["values"]:
                self.names.add(row["values"], row["counts"])
            else:
                self.empty += row["counts"]


@dataclass(slots=True)
class CodeTally:
    """``row_id`` and ``message`` are the first such row's."""

    count: int
    row_id: str
    message: str


@dataclass(slots=True)
class Tally:
    """``tasks`` by name; ``codes`` of failed rows by code."""

    tasks: Mapping[str, TaskTally]
    rows: int = 0
    ok: int = 0
    codes: dict[str, CodeTally] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return self.rows - self.ok

    @property
    def found(self) -> int:
        """Objects and points, of all tasks."""
        return sum(task.found for task in self.tasks.values())

    def count(self, batch: pa.RecordBatch, answers: Mapping[str, Answers]) -> None:
        """Takes in a batch with the row's own columns, and the answers in it by task."""
        failed = batch.filter(pc.not_equal(batch.column("status"), "ok"))
        self.rows += batch.num_rows
        self.ok += batch.num_rows - failed.num_rows
        for name, told in answers.items():
            self.tasks[name].count(told)
        columns = (failed.column(name).to_pylist() for name in ("error_code", "row_id", "error_message"))
        for code, row_id, message in zip(*columns, strict=True):
            known = self.codes.setdefault(code or "FAILED", CodeTally(0, row_id, " ".join((message or "").split())))
            known.count += 1


def tally_for(tasks: Sequence[AskedTask]) -> Tally:
    """One that has counted nothing yet."""
    return Tally({task.name: TaskTally(task.type) for task in tasks})


def _count(counts: Counter[str], values: pa.Array) -> None:
    for row in pc.value_counts(values.drop_null()).to_pylist():
        counts[row["values"]] += row["counts"]


def _answered(answers: Answers) -> int:
    return int(pc.sum(pc.equal(answers.statuses, "ok")).as_py() or 0)
