"""The report in a real browser: no complaints, marks on their objects, filters, the lightbox, keys alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from photon.report.draw import COLOURS
from photon.report.report import ReportOptions, write_report
from tests.job.inputs import write_parquet
from tests.report.browser import PROGRAM, Browser
from tests.report.runs import TASKS, box, encoded, is_colour, plain, point, told_run

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed: apt-get install chromium")
Write = Callable[..., Path]
PAGE = Path("out/report.html")
RED = (255, 0, 0)
#: How many cards of the page are to be seen, and how many marks on them.
COUNTED = """[...document.querySelectorAll('.gallery')].map(gallery => [gallery.id,
    [...gallery.querySelectorAll('.card')].filter(card => card.checkVisibility())
        .map(card => card.querySelector('h4').textContent
            + ':' + [...card.querySelectorAll('.m')].filter(mark => mark.checkVisibility()).length)])"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def ran(manifest_file: Write) -> None:
    """Six rows, of which 4 is broken; cats and dogs in three of them."""
    write_parquet(Path("rows.parquet"), [b"broken" if n == 4 else plain(20 + n, (400, 300)) for n in range(6)])
    answers = {
        0: {"things": [box("cat", 0.1, 0.1, 0.4, 0.5, score=0.9), box("dog", 0.5, 0.5, 0.9, 0.9, score=0.4)]},
        1: {"spots": [point("cat", 0.5, 0.5, score=0.8)], "ask": "yes"},
        2: {"things": [box("dog", 0.2, 0.2, 0.5, 0.5, score=0.6)]},
    }
    told_run(manifest_file(tasks=TASKS, errors="{max_failure_rate: 1}"), answers)
    write_report(Path("out"))


def shown(page: Any, gallery: str = "sample") -> list[str]:
    """``row:marks`` of each card that is to be seen."""
    return list(dict(page.ask(COUNTED))[gallery])


@pytest.mark.usefixtures("ran")
def test_no_complaints(browser: Browser) -> None:
    """Neither of the script nor of the page's own policy, and nothing is asked for from elsewhere."""
    for dark in (False, True):
        page = browser.open(PAGE, dark=dark)
        assert page.complaints() == []
        broken = "[...document.images].filter(image => !(image.complete && image.naturalWidth)).length"
        assert page.ask("document.images.length") > 10
        assert page.ask(broken) == 0
        page.close()


@pytest.mark.usefixtures("ran")
def test_complaints_would_be_heard(browser: Browser) -> None:
    """The check above can fail: a script that is not the page's own is refused, aloud."""
    changed = Path("changed.html")
    changed.write_text(PAGE.read_text(encoding="utf-8") + "<script>document.title = 'taken over'</script>", "utf-8")
    page = browser.open(changed)
    assert any("Content Security Policy" in told for told in page.complaints())
    assert page.ask("document.title") != "taken over"
    page.close()


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("", ["row0:2", "row1:1", "row2:1", "row3:0", "row4:0", "row5:0"]),
        ("#task=things", ["row0:2", "row1:0", "row2:1", "row3:0", "row5:0"]),  # nothing found is an answer, too
        ("#task=things&class=dog", ["row0:1", "row2:1"]),
        ("#class=cat", ["row0:1", "row1:1"]),
        ("#class=cat&task=spots", ["row1:1"]),
        ("#class=dog&score=0.5", ["row2:1"]),
        ("#score=0.7", ["row0:1", "row1:1", "row2:0", "row3:0", "row4:0", "row5:0"]),
        ("#class=horse&score=much&task=", ["row0:2", "row1:1", "row2:1", "row3:0", "row4:0", "row5:0"]),
    ],
)
def test_filters(browser: Browser, view: str, expected: list[str]) -> None:
    page = browser.open(PAGE, view)
    assert shown(page) == expected
    whole = sum(len(cards) for _, cards in page.ask(COUNTED))
    assert page.ask("document.getElementById('matching').textContent").startswith(f"{whole} rows, ")
    assert page.complaints() == []
    page.close()


@pytest.mark.usefixtures("ran")
def test_a_gallery_that_the_filter_empties_says_so(browser: Browser) -> None:
    page = browser.open(PAGE, "#class=cat&score=0.85")
    assert shown(page, "failed") == []
    assert page.ask("document.querySelector('#failed .none').checkVisibility()")
    assert not page.ask("document.querySelector('#best .none').checkVisibility()")
    page.close()


@pytest.mark.usefixtures("ran")
def test_controls_write_the_view(browser: Browser) -> None:
    """What is chosen by hand stands in the address, and comes back from there."""
    page = browser.open(PAGE)
    page.ask("""(() => {
        for (const [id, value] of [['class', 'dog'], ['score', '0.55']]) {
            document.getElementById(id).value = value;
            document.getElementById(id).dispatchEvent(new Event('input', {bubbles: true}));
        }})()""")
    assert shown(page) == ["row2:1"]
    view = page.ask("location.hash")
    assert view == "#class=dog&score=0.55"
    page.ask("document.getElementById('everything').click()")
    assert len(shown(page)) == 6
    page.ask(f"location.hash = {view!r}")
    assert page.until("document.getElementById('least').textContent", "0.55") == "0.55"
    assert shown(page) == ["row2:1"]
    assert page.complaints() == []
    page.close()


@pytest.mark.usefixtures("ran")
def test_the_lightbox_by_keys_alone(browser: Browser) -> None:
    page = browser.open(PAGE, "#task=things&class=dog")
    title = "document.getElementById('lightbox').open && document.getElementById('lightbox-title').textContent"
    assert page.ask(title) is False
    page.ask("document.querySelector('#sample-1 button').focus()")
    page.press("Enter")
    assert page.until(title, "row0") == "row0"
    told = page.ask("[...document.querySelectorAll('#lightbox-told td')].map(cell => cell.textContent)")
    assert told == ["dog", "things", "0.400"]  # the cat is filtered out
    assert "row=sample-1" in page.ask("location.hash")
    page.press("ArrowRight")
    assert page.until(title, "row2") == "row2"
    page.press("ArrowRight")  # it is the last
    assert page.ask(title) == "row2"
    page.press("ArrowLeft")
    assert page.until(title, "row0") == "row0"
    page.press("ArrowRight")
    assert page.until(title, "row2") == "row2"
    inside = "document.getElementById('lightbox').contains(document.activeElement)"
    for _ in range(3):
        page.press("Tab")
        assert page.ask(f"{inside} || document.activeElement === document.body")  # the body: the browser's own bars
    page.press("Escape")
    assert page.until(title, False) is False
    # Back where one was, and the address without the row.
    assert page.until("document.activeElement.closest('.card')?.querySelector('h4').textContent", "row2") == "row2"
    assert page.until("location.hash", "#task=things&class=dog") == "#task=things&class=dog"
    assert page.complaints() == []
    page.close()


@pytest.mark.usefixtures("ran")
def test_a_row_of_its_own_address(browser: Browser) -> None:
    page = browser.open(PAGE, "#row=best-2")
    assert page.ask("document.getElementById('lightbox-where').textContent") == "Best scores, 2 of 3"
    page.close()


@pytest.mark.usefixtures("ran")
def test_every_picture_and_control_has_a_name(browser: Browser) -> None:
    page = browser.open(PAGE)
    alt = page.ask("document.querySelector('#best-1 img').alt")
    assert alt == "row1: 1 cat"
    assert page.ask("document.querySelector('#most-1 img').alt") == "row0: 1 cat, 1 dog"
    nameless = """[...document.querySelectorAll('button, select, input, svg, img')].filter(one =>
        !(one.getAttribute('aria-label') || one.alt || one.textContent.trim() || one.labels?.length
          || one.querySelector('img')?.alt)).length"""
    assert page.ask(nameless) == 0
    page.close()


@pytest.mark.usefixtures("ran")
def test_light_and_dark(browser: Browser) -> None:
    """By the system's setting, and by the button against it."""
    paper = "getComputedStyle(document.body).backgroundColor"
    for dark in (False, True):
        page = browser.open(PAGE, dark=dark)
        light = sum(map(int, page.ask(paper)[4:-1].split(","))) > 600
        assert light is not dark
        page.ask("document.getElementById('theme').click()")
        assert (sum(map(int, page.ask(paper)[4:-1].split(","))) > 600) is dark
        assert page.ask("location.hash") == f"#theme={'light' if dark else 'dark'}"
        page.close()


@pytest.mark.usefixtures("ran")
def test_a_narrow_window(browser: Browser) -> None:
    """Nothing makes the page wider than it."""
    page = browser.open(PAGE, "#names=1", size=(400, 800))
    assert page.ask("document.documentElement.scrollWidth") <= 400
    page.close()


def one_thing(size: tuple[int, int], corners: tuple[int, int, int, int], manifest_file: Write) -> None:
    """The report of one picture with a red rectangle at ``corners``, and the box and the point that are right."""
    picture = Image.new("RGB", size, (100, 100, 100))
    picture.paste(RED, corners)
    write_parquet(Path("rows.parquet"), [encoded(picture)])
    left, top, right, bottom = (corner / size[n % 2] for n, corner in enumerate(corners))
    answers = {
        "things": [box("cat", left, top, right, bottom)],
        "spots": [point("dog", (left + right) / 2, (top + bottom) / 2)],
    }
    tasks = TASKS.replace("type: point, objects: [cat]", "type: point, objects: [dog]")
    told_run(manifest_file(tasks=tasks), {0: answers})
    write_report(Path("out"), None, ReportOptions(1))


def assert_framed(seen: np.ndarray) -> None:
    """The red thing is framed by the box's colour, within two pixels on every side, and the ring is in its middle."""
    ys, xs = np.nonzero(is_colour(seen, RED, 24))
    assert len(ys) > 300
    frame_y, frame_x = np.nonzero(is_colour(seen, COLOURS[0], 2))
    for red, frame in ((ys, frame_y), (xs, frame_x)):
        # Two pixels wide, and outside of the thing.
        assert red.min() - 4 <= frame.min() <= red.min() - 1
        assert red.max() + 1 <= frame.max() <= red.max() + 4
    inner = is_colour(seen, COLOURS[0], 2)[ys.min() + 1 : ys.max(), xs.min() + 1 : xs.max()]
    assert not inner[2:-2, 2:-2].any()
    ring_y, ring_x = np.nonzero(is_colour(seen, COLOURS[1], 2))
    assert len(ring_y) > 20
    assert abs(ring_y.mean() - (ys.min() + ys.max()) / 2) < 1.5
    assert abs(ring_x.mean() - (xs.min() + xs.max()) / 2) < 1.5


SHAPES = [
    ((400, 300), (80, 90, 240, 210)),
    pytest.param((240, 900), (30, 500, 210, 700), marks=pytest.mark.slow),
    pytest.param((1200, 500), (700, 100, 1100, 400), marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("size", "corners"), SHAPES)
@pytest.mark.parametrize("view", ["", "#row=sample-1"])
def test_boxes_lie_on_the_objects(browser: Browser, manifest_file: Write, size: Any, corners: Any, view: str) -> None:
    """In the card and in the lightbox; neither the thumbnail's size nor the window's moves them."""
    one_thing(size, corners, manifest_file)
    for window in ((1280, 900), (400, 800)):
        page = browser.open(PAGE, view, size=window)
        where = "#lightbox-picture .mat" if view else "#sample-1 .mat"
        # Without the tags, which are larger than the frame, and have its colour.
        page.ask("document.querySelectorAll('.tag').forEach(tag => tag.remove())")
        assert_framed(page.seen(where))
        page.close()
