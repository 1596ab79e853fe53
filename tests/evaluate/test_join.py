"""Truth and the columns of prompts, found for each row: in the output, or in one or several Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from photon.cli import app
from photon.errors import UsageError
from photon.evaluate.evaluate import evaluate
from photon.evaluate.options import TruthOptions
from photon.evaluate.report import ObjectsReport
from tests.evaluate.outputs import BOX, DETECT, QUERY, found, true, write_output, write_truth

A = (0.0, 0.0, 0.4, 0.4)
BOXES = pa.list_(BOX)
CAT = pa.array([[true("cat", A)]], BOXES)


def refusal(out: Path, file: Path | str, column: str = "truth", **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        evaluate(out, TruthOptions(column, file=str(file), **options))
    return str(caught.value)


def things(out: Path, file: Path | str | None = None, column: str = "truth", **options: Any) -> ObjectsReport:
    report = evaluate(out, TruthOptions(column, file=None if file is None else str(file), **options)).tasks[0]
    assert isinstance(report, ObjectsReport)
    return report


@pytest.mark.parametrize("column", ["source", "status", "image", "count"])
def test_a_prompt_column_named_like_one_of_the_result(tmp_path: Path, column: str) -> None:
    """The run filled in the input's column; the result's own of that name (``count`` is a task's) is another thing."""
    tasks = [{**DETECT, "objects": [f"{{{column}}}"]}, QUERY]
    rows = [{"things": [found("cat", A, 0.9)], "truth": [true("cat", A)]}]
    out = write_output(tmp_path / "out", tasks, rows, {"truth": BOXES})
    with pytest.raises(UsageError) as caught:
        things(out, task="things")
    assert str(caught.value) == (
        f"task things asks for {{{column}}}, and the column {column} of {out} is the result's own, not the input's, so "
        "what was asked of a row cannot be told; give files that have it with --truth-file, such as the input itself"
    )
    lacking = write_truth(tmp_path / "lacking.parquet", row_id=["row0"], truth=CAT)
    assert f"the column {column} of {out} is the result's own" in refusal(out, lacking, task="things")
    file = write_truth(tmp_path / "t.parquet", row_id=["row0"], truth=CAT, **{column: ["cat"]})
    report = things(out, file, task="things")
    assert {label: (made.true, made.right) for label, made in report.classes.items()} == {"cat": (1, 1)}


def test_a_prompt_column_named_like_the_truth(tmp_path: Path) -> None:
    """The run kept the input's ``label``; the truth of another file is called so too."""
    task = {**DETECT, "objects": ["{label}"]}
    rows = [{"label": "cat", "things": [found("cat", A, 0.9)]}]
    out = write_output(tmp_path / "out", [task], rows, {"label": pa.string()})
    file = write_truth(tmp_path / "t.parquet", row_id=["row0"], label=CAT)
    report = things(out, file, "label")
    assert {label: (made.true, made.right) for label, made in report.classes.items()} == {"cat": (1, 1)}


def test_an_id_column_named_like_one_of_the_result(tmp_path: Path) -> None:
    """``input.id`` was the input's ``source``, so it is compared with ``row_id``, not with the result's ``source``."""
    out = write_output(tmp_path / "out", [DETECT], [{"things": [found("cat", A, 0.9)]}], input={"id": "source"})
    file = write_truth(tmp_path / "t.parquet", source=["row0"], truth=CAT)
    assert things(out, file, on="source").micro.right == 1
    other = write_truth(tmp_path / "o.parquet", status=["ok"], truth=CAT)
    assert f"{out} holds no column status, and its row ids do not come from one" in refusal(out, other, on="status")


def test_a_second_file_that_is_unlike_the_first(tmp_path: Path) -> None:
    task = {**DETECT, "objects": ["{subject}"]}
    out = write_output(tmp_path / "out", [task], [{}])
    whole = {"row_id": ["row0"], "subject": ["cat"], "truth": CAT}
    write_truth(tmp_path / "t0.parquet", **whole)
    second = tmp_path / "t1.parquet"
    for column, told in (
        ("truth", "known here: row_id, subject"),
        ("row_id", "known here: subject, truth"),
        ("subject", "known here: row_id, truth"),
    ):
        write_truth(second, **{name: cells for name, cells in whole.items() if name != column})
        assert refusal(out, tmp_path / "t*.parquet") == f"{second} has no column {column}; {told}"
    write_truth(second, **{**whole, "truth": ["cat"]})
    kind = pq.read_schema(tmp_path / "t0.parquet").field("truth").type
    assert refusal(out, tmp_path / "t*.parquet") == (
        f"{second}: column truth is string, but {kind} in {tmp_path / 't0.parquet'}; make them one type"
    )
    twice = pa.Table.from_arrays(
        [*map(pa.array, (["row0"], ["cat"])), CAT, CAT], ["row_id", "subject", "truth", "truth"]
    )
    pq.write_table(twice, second)
    assert refusal(out, tmp_path / "t*.parquet") == f"{second} has more than one column truth; rename one of them"
    done = CliRunner().invoke(app, ["eval", str(out), "--truth", "truth", "--truth-file", str(tmp_path / "t*.parquet")])
    assert done.exit_code == 2


def test_files_that_say_the_same_in_other_types(tmp_path: Path) -> None:
    """No truth at all, or no box in any row, leaves a file without the full type."""
    rows = [{"things": [found("cat", A, 0.9)]}] * 3
    out = write_output(tmp_path / "out", [DETECT], [{**row, "row_id": str(n)} for n, row in enumerate(rows)])
    write_truth(tmp_path / "t0.parquet", row_id=["0"], truth=pa.array([None]))
    write_truth(tmp_path / "t1.parquet", row_id=["1"], truth=pa.array([[]]))
    write_truth(tmp_path / "t2.parquet", row_id=["2"], truth=CAT)
    report = things(out, tmp_path / "t*.parquet")
    assert (report.rows.judged, report.rows.untold, report.micro.true, report.micro.right) == (2, 1, 1, 1)


def test_files_with_other_class_names(tmp_path: Path) -> None:
    out = write_output(tmp_path / "out", [QUERY], [{}])
    for name, names in (("t0", ["red", "blue"]), ("t1", ["blue", "red"])):
        feature = f'{{"info": {{"features": {{"truth": {{"names": {names}, "_type": "ClassLabel"}}}}}}}}'
        schema = pa.schema([("row_id", pa.string()), ("truth", pa.int64())], {"huggingface": feature.replace("'", '"')})
        pq.write_table(pa.table([[name], [0]], schema=schema), tmp_path / f"{name}.parquet")
    assert refusal(out, tmp_path / "t*.parquet") == (
        f"{tmp_path / 't1.parquet'}: column truth has other class names than in {tmp_path / 't0.parquet'}; "
        "write both with the same"
    )


@pytest.mark.parametrize("kept", [[0, 1], [1]])
def test_the_second_of_several_inputs(tmp_path: Path, kept: list[int]) -> None:
    """By position: any file that rows were read from is the run's input, not that of the first row alone."""
    files = [write_truth(tmp_path / f"in{n}.parquet", truth=CAT) for n in (0, 1)]
    rows = [
        {"things": [found("cat", A, 0.9)], "source": {"file": str(file), "row_group": 0, "row": 0}} for file in files
    ]
    out = write_output(tmp_path / "out", [DETECT], rows, input={"parquet": list(map(str, files))})
    report = things(out, tmp_path / f"in{kept}.parquet".replace(", ", ""))
    assert (report.rows.judged, report.micro.right) == (len(kept), len(kept))
    other = write_truth(tmp_path / "other.parquet", truth=CAT)
    assert refusal(out, other).startswith(f"{other} has no column row_id, and no row of {out} was read from it; ")


def test_more_files_than_can_be_open_at_once(tmp_path: Path) -> None:
    import resource

    out = write_output(tmp_path / "out", [DETECT], [{"things": [found("cat", A, 0.9)], "row_id": "7"}])
    for n in range(300):
        write_truth(tmp_path / f"t{n}.parquet", row_id=[str(n)], truth=CAT)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        assert things(out, tmp_path / "t*.parquet").micro.right == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
