"""The part of the page that is about one task: counts, its scores, its labels or its commonest answers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from photon.job.asked import OBJECT_TYPES
from photon.report.cards import cut
from photon.report.markup import Markup, element, join
from photon.report.plots import columns_plot, share_bar
from photon.report.run_sections import percent
from photon.report.tally import BINS, TaskTally

_MOST_NAMES = 12


def task_section(name: str, asked: str, tally: TaskTally, colours: Mapping[str, int]) -> Markup:
    """The panel of the task ``name``, which asks ``asked``; ``colours`` are the numbers of the labels that have one."""
    is_objects = tally.type in OBJECT_TYPES
    return element(
        "section",
        element("h3", name, " ", element("span", tally.type, class_="type")),
        element("p", element("bdi", cut(asked, 300)), class_="quiet asked"),
        _counts(tally, is_objects),
        _scores(name, tally) if is_objects and tally.found else None,
        _names(tally, is_objects, colours),
        class_="task",
    )


def _counts(tally: TaskTally, is_objects: bool) -> Markup:
    answered = tally.statuses["ok"]
    told = [("answered", f"{answered:,}"), ("failed", f"{tally.statuses['failed']:,}")]
    if skipped := tally.statuses["skipped"]:
        told.append(("skipped", f"{skipped:,}"))
    if is_objects:
        told.append(("found", f"{tally.found:,}"))
        told.append(("a row", f"{tally.found / answered:.1f}" if answered else "–"))
    told.append(("nothing found" if is_objects else "no text", f"{tally.empty:,}"))
    for what, count in (("cut short", tally.truncated), ("repeated", tally.finishes["repetition"])):
        told.append((what, f"{count:,} · {percent(count, answered)}" if count else "0"))
    told.append(("tokens a row", f"{tally.tokens / answered:.1f}" if answered else "–"))
    cells = (element("div", element("dt", what), element("dd", value)) for what, value in told)
    return element("dl", *cells, class_="counts")


def _scores(name: str, tally: TaskTally) -> Markup:
    edges = [f"{n / BINS:.2f}" for n in range(BINS + 1)]
    counts = [int(count) for count in tally.scores]
    names = [f"{low} to {high}: {count:,}" for (low, high), count in zip(pairwise(edges), counts, strict=True)]
    highest = counts.index(max(counts))
    told = f"Scores of {name}: {tally.found:,} in all, most of them from {edges[highest]} to {edges[highest + 1]}"
    below = element(
        "div", *(element("span", at) for at in ("0", f"score; the highest bar is {max(counts):,}", "1")), class_="axis"
    )
    return join([columns_plot(counts, told, names), below])


def _names(tally: TaskTally, is_objects: bool, colours: Mapping[str, int]) -> Markup | None:
    # A text that came once is no kind of answer.
    names = [(name, told) for name, told in tally.names.commonest(_MOST_NAMES) if is_objects or told.count > 1]
    if not names:
        return None
    rows = []
    for name, told in names:
        chip = element("i", class_=f"chip c{colours[name]}", aria_hidden="true") if name in colours else None
        cells = [
            element("th", chip, element("bdi", cut(name, 60)), scope="row"),
            element("td", f"{told.count:,}", class_="n"),
            element("td", share_bar(told.count / names[0][1].count), class_="wide"),
            element("td", f"{told.total / told.count:.2f}", class_="n") if is_objects else None,
        ]
        rows.append(element("tr", *cells))
    heads = [("label" if is_objects else "answer", None), ("count", "n"), ("", None)]
    heads += [("mean", "n")] if is_objects else []
    head = element("tr", *(element("th", what, scope="col", class_=kind) for what, kind in heads))
    table = element("table", element("thead", head), element("tbody", *rows))
    return join([table, _more(tally, len(names), "label" if is_objects else "answer")])


def _more(tally: TaskTally, shown: int, what: str) -> Markup | None:
    """What the table leaves out."""
    hidden = len(tally.names.by_name) - shown
    others = f"; {tally.names.others:,} times still others" if tally.names.others else ""
    told = f"{hidden:,} more {what}{'' if hidden == 1 else 's'}{others}"
    return element("p", told, class_="quiet") if hidden or others else None
