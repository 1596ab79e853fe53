"""Counts of a report against a count by hand, whatever the batches are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from photon.report.columns import answers_of
from photon.report.tally import BINS, Named, Names, Tally, tally_for
from tests.report.made import TASKS, batches, made_rows


def tally(rows: list[dict[str, Any]], size: int) -> Tally:
    counted = tally_for(TASKS)
    for batch in batches(rows, size):
        counted.count(batch, {task.name: answers_of(batch, task) for task in TASKS})
    return counted


@pytest.mark.parametrize("size", [3, 200])
def test_rows_and_failures(size: int) -> None:
    rows = made_rows(200)
    counted = tally(rows, size)
    failed = [row for row in rows if row["status"] == "failed"]
    assert (counted.rows, counted.ok, counted.failed) == (200, 200 - len(failed), len(failed))
    assert {code: told.count for code, told in counted.codes.items()} == Counter(row["error_code"] for row in failed)
    for code, told in counted.codes.items():
        first = next(row for row in failed if row["error_code"] == code)
        assert (told.row_id, told.message) == (first["row_id"], " ".join(first["error_message"].split()))


@pytest.mark.parametrize("size", [3, 200])
@pytest.mark.parametrize(("name", "field"), [("things", "objects"), ("spots", "points")])
def test_tasks_that_find(name: str, field: str, size: int) -> None:
    rows = made_rows(200)
    counted = tally(rows, size).tasks[name]
    cells = [row[name] for row in rows]
    answers = [cell[field] for cell in cells if cell["status"] == "ok"]
    everything = [one for answer in answers for one in answer]
    assert counted.statuses == Counter(cell["status"] for cell in cells)
    assert counted.finishes == Counter(cell["finish_reason"] for cell in cells if "finish_reason" in cell)
    assert counted.truncated == sum(cell.get("truncated", False) for cell in cells)
    assert counted.tokens == 3 * len(answers)
    assert counted.found == len(everything)
    assert counted.empty == sum(not answer for answer in answers)
    bins = Counter(min(int(one["score"] * BINS), BINS - 1) for one in everything)
    assert counted.scores.tolist() == [bins[n] for n in range(BINS)]
    for label, told in counted.names.by_name.items():
        scores = [one["score"] for one in everything if one["label"] == label]
        assert (told.count, told.total) == (len(scores), pytest.approx(sum(scores)))
    assert counted.names.by_name.keys() == {"cat", "dog"}


@pytest.mark.parametrize("size", [3, 200])
def test_texts(size: int) -> None:
    rows = made_rows(200)
    counted = tally(rows, size).tasks["ask"]
    texts = [row["ask"]["text"].strip() for row in rows if row["ask"]["status"] == "ok"]
    assert {name: told.count for name, told in counted.names.by_name.items()} == Counter(filter(None, texts))
    assert counted.empty == texts.count("")
    assert counted.found == 0


def test_found_in_all_tasks() -> None:
    counted = tally(made_rows(100), 10)
    assert counted.found == counted.tasks["things"].found + counted.tasks["spots"].found > 0


def test_a_null_cell() -> None:
    """As a row that was never asked has it: of no status, and nothing in it."""
    (row,) = made_rows(1, seed=3)
    counted = tally([{**row, "things": None}], 1).tasks["things"]
    assert (counted.statuses, counted.found, counted.empty) == (Counter(), 0, 0)


def test_names_beyond_a_thousand() -> None:
    """The first thousand stay exact; memory stays what it is."""
    names = Names()
    for turn in range(3):
        for n in range(1500):
            names.add(f"label {n}", n + 1, turn)
    assert len(names.by_name) == 1000
    assert names.by_name["label 999"] == Named(3000, 3)
    assert names.others == 3 * sum(range(1001, 1501))
    assert [name for name, _ in names.commonest(2)] == ["label 999", "label 998"]
    names.add("x" * 10_000, 5)
    assert max(map(len, names.by_name)) <= 200
