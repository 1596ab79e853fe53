"""The whole page: one HTML file that fetches nothing and lets nothing run but its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from photon.job.asked import AskedTask
from photon.job.output import RunOutput
from photon.report.cards import Cards, Shown, drawn_labels
from photon.report.draw import Palette, ink_on
from photon.report.markup import Markup, element, escaped, join
from photon.report.picks import Gallery
from photon.report.run_sections import failures, figures, pace_chart, provenance, state_of
from photon.report.tally import Tally
from photon.report.task_sections import task_section
from photon.report.tasks import MEANINGLESS, fixed_labels, is_meaningless, questions
from photon.report.throughput import Throughput


@dataclass(frozen=True, slots=True)
class Content:
    """What a page is made of, but for the rows that are shown."""

    output: RunOutput
    tasks: Sequence[AskedTask]
    tally: Tally
    pace: Throughput | None


def page(content: Content, galleries: Sequence[Gallery], rows: Mapping[int, Shown]) -> str:
    """The HTML; ``rows`` by position are those of the galleries."""
    output, tasks, tally = content.output, content.tasks, content.tally
    labels = list(dict.fromkeys([*fixed_labels(tasks), *drawn_labels([*rows.values()], tasks)]))
    numbers = {label: number for number, label in enumerate(labels)}
    cards = Cards(tasks, labels)
    shown = [_gallery(gallery, rows, cards) for gallery in galleries]
    panels = [
        task_section(task.name, asked, tally.tasks[task.name], numbers)
        for task, asked in zip(tasks, questions(output, tasks), strict=True)
    ]
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Template(_asset("report.html")).substitute(
        title=escaped(str(output.root)),
        state=escaped(f"{tally.rows:,} rows · {state_of(output.record)}"),
        warning=element("p", MEANINGLESS, class_="warning") if is_meaningless(output) else "",
        digest=digest,
        style=_asset("report.css") + _colours(labels),
        figures=figures(output, tally, content.pace),
        pace=pace_chart(content.pace),
        failures=failures(tally),
        tasks=join(panels),
        filters=_filters(tasks, labels) if rows else "",
        galleries=join(shown) or element("p", "Left out.", class_="quiet"),
        provenance=provenance(output.record),
        script=script,
    )


def _asset(name: str) -> str:
    return resources.files("photon.report").joinpath("assets", name).read_text(encoding="utf-8")


def _colours(labels: Sequence[str]) -> str:
    palette = Palette()
    rules = []
    for number, label in enumerate(labels):
        colour = palette.colour(label)
        rules.append(f".c{number}{{--c:{_hex(colour)};--i:{_hex(ink_on(colour))}}}")
    return "\n".join(rules)


def _hex(colour: tuple[int, int, int]) -> str:
    return "#" + "".join(f"{value:02x}" for value in colour)


def _gallery(gallery: Gallery, rows: Mapping[int, Shown], cards: Cards) -> Markup:
    made = [
        cards.card(position, rows[position], f"{gallery.slug}-{number}")
        for number, position in enumerate(gallery.positions, 1)
    ]
    none = element("p", "No row here." if not made else "No row here matches the filter.", class_="quiet none")
    return element(
        "section",
        element("h3", gallery.title, " ", element("span", str(len(made)), class_="count")),
        element("p", gallery.told, class_="quiet"),
        element("div", *made, class_="cards"),
        none,
        class_="gallery" if made else "gallery empty",
        id=gallery.slug,
        aria_label=gallery.title,
    )


def _filters(tasks: Sequence[AskedTask], labels: Sequence[str]) -> Markup:
    chosen = sorted(enumerate(labels), key=lambda pair: pair[1].casefold())
    by_task = [element("option", task.name, value=task.name, data_n=number) for number, task in enumerate(tasks)]
    by_label = [element("option", label[:80], value=label, data_n=number) for number, label in chosen]
    slider = element("input", type="range", id="score", min=0, max=1, step=0.01, value=0)
    value = element("output", "0.00", id="least", for_="score")
    return join(
        [
            _labelled("Task", element("select", _all("all tasks"), *by_task, id="task")),
            _labelled("Label", element("select", _all("all labels"), *by_label, id="class")),
            _labelled("Score from", slider, value),
            element("label", element("input", type="checkbox", id="tags"), " names", class_="check"),
            element("button", "Reset", type="button", id="everything"),
            element("span", id="matching", class_="quiet", role="status"),
        ]
    )


def _all(text: str) -> Markup:
    return element("option", text, value="")


def _labelled(text: str, *controls: Markup) -> Markup:
    return element("label", element("span", text), *controls)
