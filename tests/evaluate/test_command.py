"""``photon-batch eval`` from end to end: streams, exit codes, JSON, picture, and optional packages that are missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from photon.cli import app
from photon.errors import UsageError
from photon.evaluate.chart import check_chart
from photon.evaluate.evaluate import evaluate
from photon.evaluate.options import TruthOptions
from photon.evaluate.table import table
from photon.job.run import run as run_job
from photon.manifest.load import load_manifest
from tests.evaluate.outputs import (
    BOX,
    CAPTION,
    DETECT,
    POINT,
    QUERY,
    TRUTH,
    failed,
    found,
    spot,
    true,
    write_output,
)
from tests.job.inputs import png, write_parquet

A, B = (0.0, 0.0, 0.4, 0.4), (0.5, 0.5, 0.9, 0.9)


TABLE = """\
out against out: column truth
4 rows, 1 failed; a box is right from IoU 0.5 on; every score

things (detect): 3 rows with truth, 1 failed, whose objects count as missed, 1 without truth left out
  class          asked    true   found   right precision    recall        F1      AP50        AP count err  empty ok
  cat                3       3       2       1     0.500     0.333     0.400     0.337     0.337     0.000         -
  dog                3       0       1       0     0.000         -     0.000         -         -     0.500     0.333
  all (micro)        6       3       3       1     0.333     0.333     0.333         -         -     0.250     0.333
  mean (macro)                                     0.500     0.333     0.400     0.337     0.337     0.000     0.333
  scores: a right one scores above a wrong one 100% of the time; F1 is best here, 0.500, with --min-score 0.9

spots (point): 3 rows with truth, 1 failed, whose objects count as missed, 1 without truth left out
  class          asked    true   found   right  hit rate    recall        F1 count err  empty ok
  cat                3       3       1       1     1.000     0.333     0.500     0.500         -
  all (micro)        3       3       1       1     1.000     0.333     0.500     0.500         -
  mean (macro)                                     1.000     0.333     0.500     0.500         -
  scores: F1 is best here, 0.500, with --min-score 0.9

count (query): 3 rows with truth, 1 failed, which count as wrong, 1 without truth left out
  exact match  0.333 (1 right)
  count error  0.000 (mean over 1 answers in numbers, 1 answers without a number left out)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", *arguments])


@pytest.fixture
def out(workplace: Path) -> Path:
    truth = {"things": [true("cat", A)], "spots": [true("cat", A)], "count": "1"}
    rows = [
        {"truth": truth, "things": [found("cat", A, 0.9), found("dog", A, 0.25)],
         "spots": [spot("cat", 0.2, 0.2, 0.9)], "count": "1"},
        {"truth": truth, "things": failed(), "spots": failed(), "count": failed()},
        {"truth": truth, "things": [found("cat", B, 0.5)], "spots": [], "count": "none"},
        {"truth": None},
    ]  # fmt: skip
    return write_output(workplace / "out", [DETECT, POINT, QUERY], rows, {"truth": TRUTH})


@pytest.mark.usefixtures("out")
def test_the_table() -> None:
    done = run("out", "--truth", "truth")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == TABLE


@pytest.mark.usefixtures("out")
def test_json_and_picture() -> None:
    done = run("out", "--truth", "truth", "--json", "e.json", "--picture", "e.png", "--min-score", "0.3")
    assert (done.exit_code, done.stderr) == (0, "")
    made = json.loads(Path("e.json").read_text(encoding="utf-8"))
    assert (made["rows"], made["failed_rows"], made["min_score"]) == (4, 1, 0.3)
    things = made["tasks"]["things"]
    assert (things["failed_rows"], things["rows_without_truth"]) == (1, 1)
    assert things["micro"]["precision"] == 0.5
    assert things["classes"]["cat"]["missed"] == 2
    assert len(things["ranking"]["bins"]) == 10
    assert made["tasks"]["count"]["exact_match"] == 1 / 3
    assert Path("e.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("out")
def test_the_same_report_gives_the_same_picture() -> None:
    for name in ("a.svg", "b.svg"):
        assert run("out", "--truth", "truth", "--task", "count", "--picture", name).exit_code == 0
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
    assert Path("a.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.usefixtures("out")
def test_json_on_standard_output() -> None:
    done = run("out", "--truth", "truth", "--json", "-", "--task", "things")
    assert list(json.loads(done.stdout)["tasks"]) == ["things"]
    assert "things (detect)" in done.stderr
    done = run("out", "--truth", "trut", "--json", "-")
    assert done.exit_code == 2
    assert "did you mean truth?" in json.loads(done.stdout)["error"]


@pytest.mark.usefixtures("out")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "out/e.json"], "out holds results and nothing else; write the JSON somewhere else than out/e.json"),
        (["--picture", "out/e.png"], "out holds results and nothing else; write the picture somewhere else"),
        (["--picture", "none/e.png"], "there is no folder none to write the picture to; make it first"),
        (["--picture", "e.pdf"], "a picture is a .png or a .svg file, not e.pdf"),
        (["--boxes", "yxyx"], "--boxes is xyxy (two corners) or xywh (x, y, width, height), not yxyx"),
        (["--iou", "0"], "--iou is above 0 and at most 1, not 0"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    done = run("out", "--truth", "truth", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"photon-batch: error: {message}")
    assert not list(Path().glob("e.*"))


def test_without_the_optional_packages(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools.cocoeval", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = evaluate(out, TruthOptions("truth"))
    text = table(report)
    assert "  NOTE: no AP: it needs pycocotools; pip install 'photon-batch[eval]'" in text
    assert "0.500     0.333     0.400         -         -" in text
    with pytest.raises(UsageError, match=r"--picture needs matplotlib; pip install 'photon-batch\[eval\]'"):
        check_chart(Path("e.png"))


def test_many_and_strange_labels(workplace: Path) -> None:
    """A label may hold anything: dollars are no formula, and a table stays a table."""
    labels = ["$x_{$", "a name that is much longer than the column", "日本", *(f"label {n}" for n in range(60))]
    rows = [{"truth": [true(label, A) for label in labels], "things": [found(label, A, 0.5) for label in labels]}]
    task = {**DETECT, "objects": [label.replace("{", "{{") for label in labels]}
    write_output(workplace / "out", [task], rows, {"truth": pa.list_(BOX)})
    done = run("out", "--truth", "truth", "--picture", "e.png", "--json", "e.json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "... and 23 more classes, in the JSON" in done.stdout
    assert len(json.loads(Path("e.json").read_text(encoding="utf-8"))["tasks"]["things"]["classes"]) == 63


def test_texts_alone_and_nothing_found(workplace: Path) -> None:
    rows = [{"truth": {"things": [true("cat", A)], "count": "1"}, "things": [], "count": "1", "cap": "x"}]
    write_output(workplace / "out", [DETECT, QUERY, CAPTION], rows, {"truth": TRUTH})
    for task in (["--task", "things"], ["--task", "count"]):
        done = run("out", "--truth", "truth", "--picture", "e.png", *task)
        assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.usefixtures("workplace")
def test_after_a_real_run() -> None:
    """The output of ``run`` itself, its truth kept, or found in the input by id or by place."""
    boxes = pa.array([[true("cat", A)], [], [true("dog", B)]], pa.list_(BOX))
    write_parquet(Path("rows.parquet"), [png(), b"broken", png()], truth=boxes)
    for name, given in (("kept", "id: name, keep: [truth]"), ("named", "id: name"), ("placed", "limit: 3")):
        Path("m.yaml").write_text(
            f"version: 1\ninput: {{parquet: rows.parquet, {given}}}\nmodel: {{path: photon://null}}\n"
            f'tasks: [{{name: things, type: detect, objects: [cat, "{{subject}}"]}}]\noutput: {{dir: {name}}}\n'
            "errors: {max_failure_rate: 1}\n".replace('"{subject}"', "dog" if name == "kept" else '"{subject}"'),
            encoding="utf-8",
        )
        run_job(load_manifest("m.yaml"))
        file = {"kept": [], "named": ["--truth-file", "rows.parquet", "--on", "name"]}
        done = run(name, "--truth", "truth", *file.get(name, ["--truth-file", "rows.parquet"]), "--json", "-")
        made = json.loads(done.stdout)
        assert (made["rows"], made["failed_rows"]) == (3, 1)
        assert made["tasks"]["things"]["micro"]["true"] == (2 if name == "kept" else 1)
        assert "the model is not a trained one: its answers are meaningless" in made["notes"]
