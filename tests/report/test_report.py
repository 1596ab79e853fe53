"""``photon-batch report`` from end to end: what the page tells, what it refuses, how large it gets."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from photon.cli import app
from photon.errors import OutputError
from photon.job.folder import OutputFolder, is_report
from photon.report import report as module
from photon.report.report import ReportOptions, write_report
from tests.job.inputs import write_parquet
from tests.report.runs import TASKS, box, encoded, plain, point, take_back, told_run
from tests.report.test_markup import NASTY, Reader

Write = Callable[..., Path]
ANSWERS = {
    0: {"things": [box("cat", 0, 0, 1, 1, score=0.9)], "spots": [point("cat", 0.5, 0.5, score=0.5)]},
    1: {"things": [box("dog", 0.1, 0.1, 0.4, 0.4, score=0.3)], "ask": "yes"},
    2: {"things": [box("cat", 0.1, 0.1, 0.4, 0.4, score=0.6)] * 3},
}


def report(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report", "out", *arguments])


def read(path: str = "out/report.html") -> str:
    return Path(path).read_text(encoding="utf-8")


def told(text: str, start: str, end: str) -> str:
    """The words between two pieces of the page, blanks as single ones."""
    inside = text.partition(start)[2].partition(end)[0]
    return " ".join(re.sub(r"<[^>]*>", " ", inside).split())


def cards(text: str, gallery: str) -> list[str]:
    """The ids of a gallery's rows, in order."""
    section = text.partition(f'id="{gallery}"')[2].partition("</section>")[0]
    before = text.rpartition(f'id="{gallery}"')[0].rpartition("<section")[2]
    return re.findall(r'<h4 title="([^"]*)">', before + section)


@pytest.fixture
def ran(manifest_file: Write) -> None:
    """Ten rows, of which 3 and 4 are broken; three with something in them."""
    write_parquet(Path("rows.parquet"), [b"broken" if n in (3, 4) else plain(n) for n in range(10)])
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"), ANSWERS)


@pytest.mark.usefixtures("ran")
def test_what_it_tells() -> None:
    done = report()
    assert (done.exit_code, done.stdout) == (0, "")
    assert re.fullmatch(r"wrote out/report\.html: 10 rows, 10 of them shown, 0\.\d MB\n", done.stderr)
    page = read()
    figures = told(page, '<dl class="figures">', "</dl>")
    assert "rows 10 ok 8 80.0% failed 2 20.0% objects and points 6 wall time" in figures
    failures = told(page, "Failures</h3>", "</section>")
    assert "IMAGE_UNIDENTIFIED 2 20.0% row3 not a picture in any format that is known here" in failures
    things = told(page, "<h3>things ", "</section>")
    assert "answered 8 failed 0 skipped 2 found 5 a row 0.6 nothing found 5" in things
    assert things.endswith("label count mean cat 4 0.68 dog 1 0.30")  # (0.9 + 3 x 0.6) / 4
    ask = told(page, "<h3>ask ", "</section>")
    assert ask.endswith("answer count no 7 1 more answer")


@pytest.mark.usefixtures("ran")
def test_provenance() -> None:
    assert report().exit_code == 0
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    made = told(read(), '<h2 id="made-title">', "</main>")
    for wanted in (
        record["job_id"],
        record["manifest_sha256"],
        record["versions"]["pyarrow"],
        *record["task_fp"].values(),
    ):
        assert wanted in made
    assert "path photon://null" in made


@pytest.mark.usefixtures("ran")
def test_the_histogram_of_scores() -> None:
    """Bars of a twentieth: 0.3, three times 0.6, and 0.9, as high as there are."""
    assert report().exit_code == 0
    plot = read().partition("<h3>things ")[2].partition("<svg")[2].partition("</svg>")[0]
    names = re.findall(r"<title>([^<]*)</title>", plot)
    heights = [float(height) for height in re.findall(r'class="space".*?<rect.*?height="([0-9.]+)"', plot)]
    assert len(names) == len(heights) == 20
    some = {name: height for name, height in zip(names, heights, strict=True) if height}
    # float32: 0.6 and 0.9 lie a little above, 0.3 a little above as well.
    assert some == {"0.30 to 0.35: 1": 33.333, "0.60 to 0.65: 3": 100.0, "0.90 to 0.95: 1": 33.333} or some == {
        "0.30 to 0.35: 1": 33.333,
        "0.60 to 0.65: 3": 100.0,
        "0.85 to 0.90: 1": 33.333,
    }


@pytest.mark.usefixtures("ran")
def test_rows_lie_in_their_galleries() -> None:
    """Mean scores: 0.7, 0.3 and 0.6."""
    assert report("--rows", "2").exit_code == 0
    page = read()
    assert cards(page, "best") == ["row0", "row2"]
    assert cards(page, "lowest") == ["row1", "row2"]
    assert set(cards(page, "median")) == {"row2", "row0"}
    assert cards(page, "most") == ["row2", "row0"]
    assert cards(page, "cut") == []
    assert set(cards(page, "failed")) == {"row3", "row4"}
    assert len(cards(page, "sample")) == 2


@pytest.mark.usefixtures("ran")
def test_the_same_run_gives_the_same_page() -> None:
    pages = []
    for seed in ("0", "0", "1"):
        assert report("--rows", "2", "--seed", seed, "--out", "a.html").exit_code == 0
        pages.append(Path("a.html").read_bytes())
    assert pages[0] == pages[1] != pages[2]


@pytest.mark.usefixtures("ran")
def test_a_picture_is_in_the_page_once() -> None:
    assert report().exit_code == 0
    page = read()
    assert page.count('src="data:image/webp;base64,') == 8  # ten rows, two of them without one
    assert page.count("data-same=") > 8
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'data-same="([^"]*)"', page)) <= set(ids)


@pytest.mark.usefixtures("ran")
def test_it_needs_nothing_from_elsewhere() -> None:
    """No address in any attribute, and a policy that lets the page fetch nothing."""
    assert report().exit_code == 0
    page = read()
    addresses = [
        value
        for _, attributes in Reader(page).tags
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "poster", "data") and value
    ]
    assert {value.partition(":")[0] for value in addresses if not value.startswith("#")} == {"data"}
    assert "default-src 'none'; img-src data:;" in page
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("nasty", [*NASTY, "]]></style></title></script><img src=x onerror=alert(1)>", "${digest} $x"])
def test_user_data_stays_text(manifest_file: Write, nasty: str) -> None:
    """Ids, labels, answers, questions: the page has the elements and attributes that it has with plain words."""
    shapes = []
    quoted = json.dumps(nasty.replace("{", "{{").replace("}", "}}").replace("${", "$${"))  # as a manifest spells it
    for word, spelt in (("word", '"word"'), (nasty, quoted)):
        write_parquet(Path("rows.parquet"), [plain(1), plain(2), b"broken"], name=[word, f"{word}2", f"{word}3"])
        tasks = f"""
  - {{name: things, type: detect, objects: [{spelt}]}}
  - {{name: ask, type: query, question: {spelt}}}"""
        said = {"things": [box(word, 0.1, 0.2, 0.5, 0.5)], "ask": word}
        told_run(manifest_file(tasks=tasks, errors="{max_failure_rate: 1}"), {0: said, 1: said})
        made = write_report(Path("out"), None, ReportOptions(3))
        assert made.shown == 3
        reader = Reader(read())
        shapes.append([(tag, sorted(attributes)) for tag, attributes in reader.tags])
        # In figures, cards (three galleries and more), filter and question.
        assert reader.text.count(word) > 20
    assert shapes[0] == shapes[1]


@pytest.mark.usefixtures("ran")
def test_a_run_that_is_going_on() -> None:
    """It is told as far as it has come, from parts that are whole."""
    take_back(0)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    changed = {**record, "state": "running", "wall_time_s": 0.0, "engine": None, "counts": {}}
    Path("out/run.json").write_text(json.dumps(changed), encoding="utf-8")
    done = report()
    assert (done.exit_code, done.stderr[:52]) == (0, "wrote out/report.html: 6 rows, 6 of them shown, 0.0 ")
    assert "6 rows · still running, or killed" in read()
    assert set(cards(read(), "sample")) == {f"row{n}" for n in range(4, 10)}


@pytest.mark.usefixtures("ran")
def test_parts_that_were_copied_tell_no_times() -> None:
    assert report().exit_code == 0
    assert "Throughput over time: " in read()
    shutil.copytree("out", "copy", copy_function=shutil.copyfile)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    record |= {"started": record["started"] - 9999, "wall_time_s": 10.0}
    Path("copy/run.json").write_text(json.dumps(record), encoding="utf-8")
    assert write_report(Path("copy")).rows == 10
    assert "Were they copied?" in read("copy/report.html")


@pytest.mark.usefixtures("ran")
def test_engine_figures() -> None:
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    engine = {
        "steps": {"vision": 3, "prefill": 20, "decode": 1000},
        "busy_share": 0.9,
        "idle_ms_per_step": 1.25,
        "rows_per_decode_step": 12.5,
        "zombie_rows": 7,
        "zombie_share": 0.01,
        "requests_on_images": 80,
        "prefixes": 10,
        "requests_per_prefix": 8.0,
    }
    Path("out/run.json").write_text(json.dumps({**record, "engine": engine, "wall_time_s": 4.0}), encoding="utf-8")
    assert report().exit_code == 0
    figures = told(read(), '<dl class="figures">', "</dl>")
    assert figures.endswith(
        "wall time 0:00:04 images/s 2.5 bubble 10.0% device idle, 1.25 ms a step "
        "prefix reuse 8.0× 80 requests, 10 prefixes"
    )
    assert "vision steps 3 prefill steps 20 decode steps 1,000 rows a decode step 12.5 zombie rows 7 (1.0%)" in told(
        read(), "<h3>Engine</h3>", "</table>"
    )


@pytest.mark.usefixtures("ran")
def test_no_pictures_at_all() -> None:
    """For an output that has left its input behind."""
    Path("rows.parquet").unlink()
    done = report()
    assert done.exit_code == 4
    assert "the pictures of out cannot be read again" in done.stderr
    assert "or make a report without pictures, with --rows 0" in done.stderr
    assert not Path("out/report.html").exists()
    assert report("--rows", "0").exit_code == 0
    assert "10 rows, 0 of them shown" in report("--rows", "0").stderr
    assert "<img" not in read()
    assert "<article" not in read()
    assert "objects and points 6" in told(read(), '<dl class="figures">', "</dl>")


@pytest.mark.usefixtures("ran")
def test_pictures_that_changed_are_told() -> None:
    write_parquet(Path("rows.parquet"), [b"gone" if n in (3, 5) else plain(n) for n in range(10)])
    assert report().stderr.endswith("; 1 of the pictures could not be shown, and it says why\n")
    assert "not readable any more: not a picture" in read()


def test_a_loader_s_options_are_left_out(manifest_file: Write) -> None:
    """A token may be among them."""
    write_parquet(Path("rows.parquet"), [plain(1)])
    told_run(manifest_file(tasks=TASKS))
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    record["manifest"]["input"]["options"] = {"token": "hf_secret"}
    Path("out/run.json").write_text(json.dumps(record), encoding="utf-8")
    assert report("--rows", "0").exit_code == 0
    assert "hf_secret" not in read()
    assert "token" in read()


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "-1"], "--rows is from 0 to 100, not -1"),
        (["--rows", "101"], "--rows is from 0 to 100, not 101"),
        (["--out", "a.pdf"], "a report is a .html file, not a.pdf"),
        (["--out", "out/other.html"], "out holds results and nothing else; write the report somewhere else than"),
        (["--out", "out/data/report.html"], "out holds results and nothing else"),
        (["--out", "none/a.html"], "there is no folder none to write the report to; make it first"),
        (["--out", "mine.html"], "mine.html is there already and no report of ours"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    Path("mine.html").write_text("<p>mine", encoding="utf-8")
    before = sorted(Path().rglob("*"))
    done = report(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"photon-batch: error: {message}")
    assert sorted(Path().rglob("*")) == before
    assert Path("mine.html").read_text(encoding="utf-8") == "<p>mine"


@pytest.mark.usefixtures("workplace")
def test_no_run() -> None:
    done = report()
    assert done.exit_code == 2
    assert "there is no folder out" in done.stderr


@pytest.mark.usefixtures("ran")
def test_a_file_that_cannot_be_written() -> None:
    Path(".a.html.tmp").mkdir()
    done = report("--out", "a.html")
    assert done.exit_code == 5
    assert "cannot write a.html: " in done.stderr
    assert not Path("a.html").exists()


@pytest.mark.usefixtures("ran")
def test_the_report_is_the_run_s(manifest_file: Write) -> None:
    """In the output folder it is ours: it goes with the run, and the user's own of that name stays a stranger."""
    assert report().exit_code == report().exit_code == 0
    assert is_report(Path("out/report.html"))
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"))
    assert not Path("out/report.html").exists()
    Path("out/report.html").write_text("<p>mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"holds a file that is not ours: out/report\.html"):
        OutputFolder("out").check(fresh=True)
    assert report().exit_code == 2


def noise(count: int, side: int) -> list[bytes | None]:
    """Pictures that no format makes small."""
    dice = np.random.default_rng(1)
    return [
        encoded(Image.fromarray(dice.integers(0, 256, (side, side, 3), np.uint8)), compress_level=0)
        for _ in range(count)
    ]


def found(count: int) -> list[Any]:
    return [box("cat", 0.1, 0.1, 0.2 + n / 1e4, 0.3) for n in range(count)]


def test_pictures_shrink_until_they_fit(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(Path("rows.parquet"), noise(10, 160))
    told_run(manifest_file(tasks=TASKS))
    sizes = []
    for room in (400_000, 100_000):
        monkeypatch.setattr(module, "_FOR_PICTURES", room)
        made = write_report(Path("out"), None, ReportOptions(10))
        assert made.shown == 10
        uris = re.findall(r'src="(data:[^"]*)"', read())
        assert sum(map(len, uris)) <= room
        sizes.append(made.bytes)
    assert sizes[1] < sizes[0] - 100_000


def test_galleries_shrink_until_they_fit(manifest_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where marks and texts alone are too much."""
    write_parquet(Path("rows.parquet"), [plain(n) for n in range(8)])
    told_run(manifest_file(tasks=TASKS), {n: {"things": found(400), "ask": "x" * 5000} for n in range(8)})
    monkeypatch.setattr(module, "LARGEST", 1_000_000)
    made = write_report(Path("out"), None, ReportOptions(8))
    assert made.bytes == Path("out/report.html").stat().st_size <= 1_000_000
    assert 0 < made.rows_each < 8
    assert f"; {made.rows_each} rows a gallery, so that it stays below 1 MB" in made.text()
    assert "400 found, 300 drawn" in told(read(), 'id="best-1"', "</article>")
    assert max(map(len, re.findall("x+", read()))) < 2100


@pytest.mark.slow
def test_a_large_report(manifest_file: Write) -> None:
    """A hundred rows a gallery, of noise and with hundreds of boxes each: below 20 MB all the same."""
    write_parquet(Path("rows.parquet"), noise(120, 400))
    answers = {n: {"things": found(200 + n), "ask": "long " * 1000} for n in range(120)}
    told_run(manifest_file(tasks=TASKS), answers)
    made = write_report(Path("out"), None, ReportOptions(100))
    assert 8_000_000 < Path("out/report.html").stat().st_size <= 20_000_000
    assert 10 < made.rows_each < made.wanted == 100
