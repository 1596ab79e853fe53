"""The parts of the page that are about the run as a whole: figures, throughput, failures, what made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from photon.job.output import RunOutput
from photon.job.progress import clock
from photon.report.cards import cut
from photon.report.markup import Markup, element, join
from photon.report.plots import columns_plot, share_bar
from photon.report.tally import Tally
from photon.report.throughput import Throughput

_STATES = {
    "finished": "finished",
    "running": "still running, or killed: what was whole when the report was made",
    "over_budget": "stopped: more rows failed than the manifest allows",
    "interrupted": "interrupted: the rows that were whole",
    "failed": "the run failed: the rows that were whole",
    "preempted": "stopped to make room, and to be run again: the rows that were whole",
}
_LONGEST = 100_000  # characters of the manifest


def state_of(record: Mapping[str, Any]) -> str:
    """How the run ended, in words."""
    state = str(record.get("state"))
    return _STATES.get(state, state)


def figures(output: RunOutput, tally: Tally, pace: Throughput | None) -> Markup:
    """The few numbers that a run comes to."""
    # A run that is going on has no end yet but that of its last part.
    wall = output.record.get("wall_time_s") or (pace.seconds if pace else None)
    rate = pace.rows / wall if pace and wall else None
    cells = [
        _figure("rows", f"{tally.rows:,}"),
        _figure("ok", f"{tally.ok:,}", percent(tally.ok, tally.rows)),
        _figure("failed", f"{tally.failed:,}", percent(tally.failed, tally.rows), bad=tally.failed > 0),
        _figure("objects and points", f"{tally.found:,}"),
        _figure("wall time", "–" if wall is None else clock(wall), "of the last run" if pace and pace.others else None),
        _figure("images/s", "–" if rate is None else f"{rate:.3g}" if rate < 1000 else f"{rate:,.0f}"),
    ]
    engine = output.record.get("engine")
    if isinstance(engine, Mapping) and any((engine.get("steps") or {}).values()):
        idle = f"{engine.get('idle_ms_per_step', 0):.3g} ms a step"
        cells.append(_figure("bubble", f"{1 - engine.get('busy_share', 0):.1%}", f"device idle, {idle}"))
        reuse = f"{engine.get('requests_on_images', 0):,} requests, {engine.get('prefixes', 0):,} prefixes"
        cells.append(_figure("prefix reuse", f"{engine.get('requests_per_prefix', 0):.1f}×", reuse))
    return element("dl", *cells, class_="figures")


def pace_chart(pace: Throughput | None) -> Markup:
    """Throughput from start to end, or why there is none."""
    if pace is None:
        why = "The part files do not tell it: none was written in the time of the run. Were they copied?"
        return element("p", why, class_="quiet")
    width = pace.seconds / len(pace.rates)
    names = [
        f"{clock(n * width)} to {clock((n + 1) * width)}: {rate:.3g} images/s" for n, rate in enumerate(pace.rates)
    ]
    told = f"Throughput over time: {min(pace.rates):.3g} to {max(pace.rates):.3g} images/s"
    top = element("div", element("span", f"{max(pace.rates):.3g} images/s"), class_="axis")
    below = element("div", element("span", "0:00:00"), element("span", clock(pace.seconds)), class_="axis")
    others = f"{pace.others:,} rows were written at other times: by earlier runs, or by other shards."
    note = element("p", others, class_="quiet") if pace.others else None
    return join([top, columns_plot(pace.rates, told, names), below, note])


def failures(tally: Tally) -> Markup:
    """Failed rows by code, the most frequent first."""
    if not tally.failed:
        return element("p", "No row failed.", class_="quiet")
    head = [element("th", name, scope="col", class_=kind or None) for name, kind in _FAILURES]
    rows = []
    for code, told in sorted(tally.codes.items(), key=lambda item: -item[1].count):
        example = [element("bdi", cut(str(told.row_id), 120), class_="id"), " ", element("bdi", cut(told.message, 300))]
        cells = [
            element("th", code, scope="row", class_="bad"),
            element("td", f"{told.count:,}", class_="n"),
            element("td", percent(told.count, tally.rows), class_="n"),
            element("td", share_bar(told.count / tally.failed), class_="wide"),
            element("td", *example, class_="quiet example"),
        ]
        rows.append(element("tr", *cells))
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll failures")


_FAILURES = (("code", ""), ("rows", "n"), ("of all", "n"), ("", "wide"), ("the first one", ""))


def provenance(record: Mapping[str, Any]) -> Markup:
    """What made the results: model, program, settings."""
    manifest, model = (_mapping(record.get(name)) for name in ("manifest", "model"))
    asked, run = _mapping(manifest.get("model")), _mapping(record.get("versions"))
    facts = {name: value for name, value in model.items() if name != "meaningless"}  # told at the top, if so
    started = datetime.fromtimestamp(record.get("started") or 0, UTC).isoformat(" ", "seconds")
    tables = [
        _facts("Model", {"path": asked.get("path"), "revision": asked.get("revision"), **facts}),
        _facts(
            "Run",
            {
                "state": record.get("state"),
                "error": record.get("error"),
                "started": started.replace("+00:00", " UTC"),
                "job": record.get("job_id"),
                "seed": record.get("seed"),
                "manifest sha256": record.get("manifest_sha256"),
            },
        ),
        _facts("Engine", {**_mapping(manifest.get("engine")), **_measured(record)}),
        _facts("Pictures", _mapping(manifest.get("image"))),
        _facts("Task fingerprints", _mapping(record.get("task_fp"))),
        _facts("Versions", {"photon-batch": record.get("photon_batch"), **run, "platform": record.get("platform")}),
    ]
    text = cut(json.dumps(_unsecret(manifest), indent=2, ensure_ascii=False), _LONGEST)
    whole = element("details", element("summary", "The manifest, with all defaults"), element("pre", text))
    return join([element("div", *tables, class_="facts"), whole])


def _measured(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the engine counted beside the figures at the top."""
    engine = _mapping(record.get("engine"))
    steps = {f"{kind} steps": f"{count:,}" for kind, count in _mapping(engine.get("steps")).items() if count}
    if not steps:
        return {}
    zombies = f"{engine.get('zombie_rows', 0):,} ({engine.get('zombie_share', 0):.1%})"
    return {**steps, "rows a decode step": engine.get("rows_per_decode_step"), "zombie rows": zombies}


def _unsecret(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The loader's options are left out: a token may be among them, and a report is passed on."""
    told = dict(manifest)
    given = _mapping(told.get("input"))
    if given.get("options"):
        told["input"] = {**given, "options": dict.fromkeys(given["options"], "(left out)")}
    return told


def _facts(title: str, facts: Mapping[str, Any]) -> Markup:
    rows = [
        element("tr", element("th", name, scope="row"), element("td", element("bdi", cut(_plain(value), 300))))
        for name, value in facts.items()
        if value not in (None, {}, [])
    ]
    return element("section", element("h3", title), element("table", element("tbody", *rows)))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _figure(name: str, value: str, more: str | None = None, bad: bool = False) -> Markup:
    told = [element("dt", name), element("dd", value, class_="bad" if bad else None)]
    return element("div", *told, element("dd", more, class_="more") if more else None)


def percent(part: int, whole: int) -> str:
    """``12.3%``; a dash where there is nothing to divide by."""
    return f"{part / whole:.1%}" if whole else "–"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
