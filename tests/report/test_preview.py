"""``photon-batch preview`` from end to end: what lies where on the sheet, exit codes, files left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from photon.cli import app
from photon.core import Failure
from photon.errors import OutputError
from photon.job.folder import OutputFolder, is_preview
from photon.report import preview as module
from photon.report.answers import Line
from photon.report.draw import COLOURS
from photon.report.preview import PreviewOptions, write_preview
from photon.report.sheet import CELL, Cell
from tests.job.inputs import write_parquet
from tests.report.runs import TASKS, box, encoded, is_colour, pixels, plain, point, shade, take_back, told_run

Write = Callable[..., Path]
RED, GREY = (255, 0, 0), (217, 217, 214)


def preview(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["preview", "out", *arguments])


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """What the sheets of a test are made of."""
    made: list[Cell] = []
    real = module.make_sheet
    monkeypatch.setattr(module, "make_sheet", lambda *a: made.extend(a[2]) or real(*a))
    return made


@pytest.fixture
def ran(manifest_file: Write) -> None:
    """Ten rows, of which 3 and 4 are broken."""
    write_parquet(Path("rows.parquet"), [b"broken" if n in (3, 4) else plain(n) for n in range(10)])
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"), {0: {"things": [box("cat", 0, 0, 1, 1)]}})


def stored(seen: Image.Image, orientation: int) -> bytes:
    """A picture that is to be seen as ``seen``, as a camera held in that way stores it."""
    back = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    tag = Image.Exif()
    tag[0x0112] = orientation
    return encoded(seen.transpose(back[orientation]) if orientation in back else seen, exif=tag)


def assert_around(sheet: np.ndarray, colour: tuple[int, int, int]) -> None:
    """A box's strokes in ``colour`` lie at the border of what is red; on all sides but the top, where its tag is."""
    ys, xs = np.nonzero(is_colour(sheet, RED, 12))
    assert len(ys) > 1000
    strokes = is_colour(sheet, colour)
    beside, below = (
        np.flatnonzero(strokes[(ys.min() + ys.max()) // 2]),
        np.flatnonzero(strokes[:, (xs.min() + xs.max()) // 2]),
    )
    assert len(beside) == 4
    assert abs(beside[:2] - xs.min()).max() <= 5
    assert abs(beside[2:] - xs.max()).max() <= 5
    assert abs(below[-2:] - ys.max()).max() <= 5


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize("exif", ["apply", "ignore"])
def test_boxes_lie_on_the_objects(manifest_file: Write, orientation: int, exif: str) -> None:
    """One red thing on grey, off the middle both ways; the answer is where it is in the frame that the model saw."""
    seen = Image.new("RGB", (120, 90), (100, 100, 100))
    seen.paste(RED, (12, 40, 36, 80))
    data = stored(seen, orientation)
    write_parquet(Path("rows.parquet"), [data])
    x, y, far_x, far_y = 12 / 120, 40 / 90, 36 / 120, 80 / 90
    if exif == "ignore":  # turned back: 3 by a half turn, 6 to the left, 8 to the right
        x, y, far_x, far_y = {
            1: (x, y, far_x, far_y),
            3: (1 - far_x, 1 - far_y, 1 - x, 1 - y),
            6: (y, 1 - far_x, far_y, 1 - x),
            8: (1 - far_y, x, 1 - y, far_x),
        }[orientation]
    told_run(manifest_file(tasks=TASKS, image=f"{{exif: {exif}}}"), {0: {"things": [box("cat", x, y, far_x, far_y)]}})
    done = preview()
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "wrote out/preview.png: 1 of 1 rows\n")
    sheet = pixels(Path("out/preview.png"))
    # The legend's chip has the colour too, in the heading.
    assert_around(sheet[130:], COLOURS[0])


def test_points_lie_on_the_objects(manifest_file: Write) -> None:
    picture = Image.new("RGB", (200, 100), (100, 100, 100))
    picture.paste(RED, (20, 10, 60, 50))
    write_parquet(Path("rows.parquet"), [encoded(picture)])
    told_run(manifest_file(tasks=TASKS), {0: {"spots": [point("cat", 0.2, 0.3)]}})
    assert preview().exit_code == 0
    sheet = pixels(Path("out/preview.png"))[130:]
    ys, xs = np.nonzero(is_colour(sheet, RED, 12))
    y, x = (ys.min() + ys.max()) // 2, (xs.min() + xs.max()) // 2
    rings_y, rings_x = np.nonzero(is_colour(sheet[y - 9 : y + 10, x - 9 : x + 10], COLOURS[0]))
    assert len(rings_y) > 60
    assert abs(rings_y.mean() - 9) < 1
    assert abs(rings_x.mean() - 9) < 1


def test_a_large_picture_is_scaled_to_its_cell(manifest_file: Write, cells: list[Cell]) -> None:
    sizes = {0: (4000, 1000), 1: (300, 3000), 2: (5, 4), 3: (3000, 1)}
    write_parquet(Path("rows.parquet"), [plain(60, size) for size in sizes.values()])
    told_run(manifest_file(tasks=TASKS))
    assert preview().exit_code == 0
    assert [cell.picture.size for cell in cells if cell.picture] == [(352, 88), (30, 304), (352, 282), (352, 1)]


@pytest.mark.usefixtures("ran")
def test_rows_are_where_they_should_be() -> None:
    """Each picture has a grey of its own: in the sheet's order it is the row's."""
    assert preview("--rows", "10", "--columns", "5").stderr == "wrote out/preview.png: 10 of 10 rows\n"
    sheet = pixels(Path("out/preview.png"))
    assert sheet.shape[1] == 2 * 28 + 5 * CELL + 4 * 20
    for n in range(10):
        column = sheet[:, 28 + n % 5 * (CELL + 20) + CELL // 2]
        where = np.flatnonzero(is_colour(column, GREY if n in (3, 4) else shade(n)))
        half = len(sheet) / 2
        inside = where > half if n >= 5 else where < half
        # Letters in the middle of a grey cell take some of it.
        assert inside.sum() > (100 if n in (3, 4) else 200), n


@pytest.mark.usefixtures("ran")
def test_the_same_run_gives_the_same_sheet(cells: list[Cell]) -> None:
    sheets = []
    for seed in ("0", "0", "1"):
        assert preview("--rows", "3", "--seed", seed, "--out", "a.png").exit_code == 0
        sheets.append(Path("a.png").read_bytes())
    assert sheets[0] == sheets[1] != sheets[2]
    names = [cell.name for cell in cells]
    assert names[:3] == names[3:6] != names[6:]
    assert len({*names[:3]}) == 3


@pytest.mark.usefixtures("ran")
def test_failed_rows(cells: list[Cell]) -> None:
    """They need no input any more, which the run could not read either."""
    Path("rows.parquet").unlink()
    done = preview("--failed")
    assert (done.exit_code, done.stderr) == (0, "wrote out/preview.png: 2 of 2 failed rows\n")
    message = "not a picture in any format that is known here"
    assert cells == [Cell(f"row{n}", None, (), Failure("IMAGE_UNIDENTIFIED", message)) for n in (3, 4)]
    sheet = pixels(Path("out/preview.png"))
    assert is_colour(sheet, GREY).sum() > 0.8 * 2 * CELL * 132
    assert is_colour(sheet, (163, 38, 44)).sum() > 50  # the code, in red
    assert not is_colour(sheet, COLOURS[0]).any()


def test_a_row_of_which_one_task_failed(manifest_file: Write, cells: list[Cell]) -> None:
    """The picture is there, with what the other tasks found."""
    write_parquet(Path("rows.parquet"), [plain(70)], subject=[None])
    manifest = manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}")
    told_run(manifest, {0: {"things": [box("cat", 0.2, 0.2, 0.8, 0.8)]}})
    assert preview("--failed").exit_code == 0
    (cell,) = cells
    assert cell.picture is not None
    assert is_colour(np.asarray(cell.picture), COLOURS[0]).any()
    spots, ask = cell.lines
    assert spots == Line("spots", "nothing found", "quiet")
    assert (ask.task, ask.tone) == ("ask", "bad")
    assert ask.text.startswith("PROMPT_NULL ")


def test_no_row_failed(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [plain(n) for n in range(4)])
    told_run(manifest_file(tasks=TASKS))
    done = preview("--failed")
    assert done.exit_code == 2
    assert "none of the 4 rows of out failed; leave --failed out" in done.stderr


def test_nothing_found(manifest_file: Write, cells: list[Cell]) -> None:
    write_parquet(Path("rows.parquet"), [plain(70)])
    told_run(manifest_file(tasks=TASKS), {0: {"ask": "yes, it is"}})
    assert preview().exit_code == 0
    (cell,) = cells
    assert cell.picture is not None
    assert cell.picture.getcolors() == [(CELL * 264, shade(70))]
    nothing = [Line(name, "nothing found", "quiet") for name in ("things", "spots")]
    assert list(cell.lines) == [*nothing, Line("ask", "yes, it is")]


def test_tasks_and_scores(manifest_file: Write, cells: list[Cell]) -> None:
    write_parquet(Path("rows.parquet"), [plain(70)])
    things = [box("cat", 0.1, 0.1, 0.4, 0.9, score=0.9), box("dog", 0.6, 0.1, 0.9, 0.9, score=0.5)]
    told_run(manifest_file(tasks=TASKS), {0: {"things": things, "spots": [point("cat", 0.5, 0.5)]}})

    def colours(*arguments: str) -> list[bool]:
        assert preview(*arguments).exit_code == 0
        assert cells[-1].picture is not None
        drawn = np.asarray(cells[-1].picture)
        middle = drawn[130:135, 174:179]
        return [
            bool(found) for found in (*(is_colour(drawn, c).any() for c in COLOURS[:2]), (middle != shade(70)).any())
        ]

    assert colours() == [True, True, True]
    assert colours("--min-score", "0.6") == [True, False, True]
    assert colours("--task", "things") == [True, True, False]
    assert [line.task for line in cells[-1].lines] == []
    assert colours("--task", "spots", "--task", "ask") == [True, False, True]
    assert colours("--min-score", "0.95") == [False, False, False]


@pytest.mark.usefixtures("ran")
def test_a_run_that_is_going_on(cells: list[Cell]) -> None:
    take_back(0)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    Path("out/run.json").write_text(json.dumps({**record, "state": "running"}), encoding="utf-8")
    done = preview("--rows", "2")
    assert (done.exit_code, done.stderr) == (0, "wrote out/preview.png: 2 of 6 rows\n")
    assert all(cell.name in {f"row{n}" for n in range(4, 10)} for cell in cells)


@pytest.mark.usefixtures("ran")
def test_pictures_that_changed_are_told(cells: list[Cell]) -> None:
    write_parquet(Path("rows.parquet"), [b"gone" if n in (3, 5) else plain(n) for n in range(10)])
    done = preview("--rows", "10")
    assert (
        done.stderr == "wrote out/preview.png: 10 of 10 rows; 1 of the pictures could not be shown, and it says why\n"
    )
    assert cells[5].problem is not None
    assert cells[5].problem.code == "IMAGE_UNIDENTIFIED"
    assert [cell.picture is None for cell in cells] == [n in (3, 4, 5) for n in range(10)]


@pytest.mark.usefixtures("ran")
def test_an_input_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    done = CliRunner().invoke(app, ["preview", "../out"])
    assert done.exit_code == 4
    assert "the pictures of ../out cannot be read again (cannot read rows.parquet: " in done.stderr
    assert "go to the folder that the run was started in" in done.stderr
    assert not Path("../out/preview.png").exists()


def test_strange_names_and_labels(manifest_file: Write, cells: list[Cell]) -> None:
    labels = ["日本の猫", "größer", "a\\0b\\nc", "x" * 300, "<b>{{</b>"]
    named = ["день", "\u202eabc", "a\0b", "", "long " * 400]
    write_parquet(Path("rows.parquet"), [plain(70)] * 5, name=named)
    tasks = f"""
  - name: things
    type: detect
    objects: [{", ".join(f'"{label}"' for label in labels)}]
  - {{name: 答え, type: caption}}"""
    labels = [label.replace("\\0", "\0").replace("\\n", "\n").replace("{{", "{") for label in labels]
    found = [box(label, 0.1 * n, 0.2, 0.1 * n + 0.2, 0.8) for n, label in enumerate(labels)]
    said = {"things": found, "答え": "はい\nは\0い " * 300}
    told_run(manifest_file(tasks=tasks), dict.fromkeys(range(5), said))
    done = preview()
    assert (done.exit_code, done.stderr) == (0, "wrote out/preview.png: 5 of 5 rows\n")
    assert [cell.name for cell in cells] == named
    assert is_colour(pixels(Path("out/preview.png")), COLOURS[4]).any()


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "--rows is from 1 to 200, not 0"),
        (["--columns", "13"], "--columns is from 1 to 12, not 13"),
        (["--min-score", "1.5"], "--min-score is from 0 to 1, not 1.5"),
        (["--task", "thing"], "out has no task thing; did you mean things?"),
        (["--out", "a.jpg"], "a preview is a .png file, not a.jpg"),
        (["--out", "out/other.png"], "out holds results and nothing else; write the preview somewhere else than"),
        (["--out", "out/data/preview.png"], "out holds results and nothing else"),
        (["--out", "none/a.png"], "there is no folder none to write the preview to; make it first"),
        (["--out", "mine.png"], "mine.png is there already and no preview of ours"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    Path("mine.png").write_bytes(plain(1))
    before = sorted(Path().rglob("*"))
    done = preview(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"photon-batch: error: {message}")
    assert sorted(Path().rglob("*")) == before
    assert Path("mine.png").read_bytes() == plain(1)


@pytest.mark.usefixtures("workplace")
def test_no_run() -> None:
    done = preview()
    assert done.exit_code == 2
    assert "there is no folder out" in done.stderr


@pytest.mark.usefixtures("ran")
def test_a_file_that_cannot_be_written() -> None:
    Path(".a.png.tmp").mkdir()
    done = preview("--out", "a.png")
    assert done.exit_code == 5
    assert "cannot write a.png: " in done.stderr


@pytest.mark.usefixtures("ran")
def test_the_sheet_is_the_run_s(manifest_file: Write) -> None:
    """In the output folder it is ours: it goes with the run, and the user's own of that name stays a stranger."""
    assert preview().exit_code == preview().exit_code == 0
    assert is_preview(Path("out/preview.png"))
    Path("out/.preview.png.tmp").write_bytes(b"of one that was killed")
    OutputFolder("out").check(fresh=False)
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"))
    assert not {"preview.png", ".preview.png.tmp"} & {path.name for path in Path("out").iterdir()}
    Path("out/preview.png").write_bytes(plain(1))
    with pytest.raises(OutputError, match=r"holds a file that is not ours: out/preview\.png"):
        OutputFolder("out").check(fresh=True)
    assert preview().exit_code == 2
    assert Path("out/preview.png").read_bytes() == plain(1)


def test_the_size_of_the_file(manifest_file: Write) -> None:
    """Noise, which no PNG makes smaller."""
    dice = np.random.default_rng(1)
    noise: list[Any] = [encoded(Image.fromarray(dice.integers(0, 256, (304, 352, 3), np.uint8))) for _ in range(12)]
    write_parquet(Path("rows.parquet"), noise)
    told_run(manifest_file(tasks=TASKS, output="{dir: out, chunk_rows: 12}"))
    made = write_preview(Path("out"), None, PreviewOptions())
    assert (made.shown, made.total, made.lost) == (12, 12, 0)
    assert made.path.stat().st_size < 5_000_000
