"""The timelines of both depths as one SVG: what the host and each stream do over a few steps, on one scale."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from photon.engine.record import Span, StepRecord
from photon.errors import OutputError
from photon.sim.profile import Profile
from photon.sim.simulate import Simulation
from photon.sim.workload import Mix

_LANES = ("host", "upload", "compute", "readback")
_COLOURS = {
    "launch": "#4878a8",
    "wait": "#e4e4e4",
    "commit": "#c8763c",
    "finalize": "#7a5aa6",
    "forward": "#3f8f5b",
    "sample": "#a3cf8f",
    "copy": "#8a8a8a",
}
_LEGEND = (
    ("launch", "launch"),
    ("finalize", "finalize"),
    ("wait", "host waits"),
    ("commit", "commit and housekeeping"),
    ("forward", "forward"),
    ("sample", "sampling"),
    ("copy", "copy"),
)
_BASIS = {"published": "fitted to published figures", "estimated": "estimated"}
_LEFT, _WIDTH, _LANE, _GAP, _TOP = 84, 900, 26, 6, 58
_PANEL = len(_LANES) * (_LANE + _GAP) + 66
_LEAST = 2.0  # pixels, so that a copy of microseconds is seen


def write_timeline(path: Path, profile: Profile, mix: Mix) -> None:
    """Raises ``OutputError`` where the file cannot be written."""
    try:
        path.write_text(timeline_svg(profile, mix), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from None


def timeline_svg(profile: Profile, mix: Mix, *, steps: int = 4) -> str:
    """``steps`` blocking steps of ``mix``, and as long a stretch of pipelined ones below."""
    runs = [_steady(profile, mix, depth, steps) for depth in (1, 2)]
    length = steps * max(_period(records) for records in runs)
    title = f"simulated: {mix}, profile {profile.name} (costs {_BASIS[profile.basis]})"
    height = _TOP + 2 * _PANEL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 16} {height}" '
        'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="white"/><text x="16" y="22" font-size="15">{escape(title)}</text>',
        *_legend(),
    ]
    for at, (name, records) in enumerate(zip(("depth 1, blocking", "depth 2, pipelined"), runs, strict=True)):
        parts += _panel(name, records, length, _TOP + at * _PANEL)
    return "\n".join([*parts, "</svg>", ""])


def _steady(profile: Profile, mix: Mix, depth: int, steps: int) -> list[StepRecord]:
    """A run's last stretch of decode steps that is long enough, from its second step on; else the run's end."""
    simulation = Simulation(profile, [mix], depth=depth)
    simulation.run(2 * mix.streams)
    records = simulation.records
    wanted = steps + 3
    for at in range(len(records) - wanted, -1, -1):
        if all(record.kind == "decode" for record in records[at : at + wanted]):
            return records[at + 1 :]
    return records[-wanted:]


def _period(records: list[StepRecord]) -> float:
    return records[2].forward.start - records[1].forward.start


def _legend() -> Iterator[str]:
    x = 16
    for key, words in _LEGEND:
        yield f'<rect x="{x}" y="34" width="12" height="12" fill="{_COLOURS[key]}"/>'
        yield f'<text x="{x + 17}" y="44">{words}</text>'
        x += 38 + 7 * len(words)


def _panel(name: str, records: list[StepRecord], length: float, top: float) -> Iterator[str]:
    start, period = records[1].forward.start, 1e3 * _period(records)
    scale = _WIDTH / length
    yield f'<text x="16" y="{top + 24}" font-weight="bold">{name}: {period:.2f} ms per step</text>'
    for at, lane in enumerate(_LANES):
        y = top + 34 + at * (_LANE + _GAP)
        yield f'<text x="16" y="{y + 17}">{lane}</text>'
        yield f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_LANE}" fill="#f7f7f7"/>'
    for number, record in enumerate(records):
        for lane, colour, span in _spans(record):
            left, right = max(0.0, span.start - start), min(length, span.end - start)
            if right <= left:
                continue
            y = top + 34 + _LANES.index(lane) * (_LANE + _GAP)
            x, width = _LEFT + left * scale, max(_LEAST, (right - left) * scale)
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_LANE}" fill="{_COLOURS[colour]}"/>'
            if width > 24 and colour != "wait":
                place = f'x="{x + width / 2:.1f}" y="{y + 17}" text-anchor="middle"'
                yield f'<text {place} fill="{"black" if colour == "sample" else "white"}">{number}</text>'
    yield from _axis(length, scale, top + 34 + len(_LANES) * (_LANE + _GAP))


def _axis(length: float, scale: float, y: float) -> Iterator[str]:
    """A tick every millisecond, or every five or more of a slow card."""
    every = next(e for e in (1, 5, 20, 100, 500) if 1e3 * length / e <= 30)
    for ms in range(0, int(1e3 * length) + 1, every):
        x = _LEFT + ms * scale / 1e3
        yield f'<line x1="{x:.1f}" y1="{y - 4}" x2="{x:.1f}" y2="{y}" stroke="#555"/>'
        yield f'<text x="{x:.1f}" y="{y + 12}" font-size="10" text-anchor="middle">{ms} ms</text>'


def _spans(record: StepRecord) -> Iterator[tuple[str, str, Span]]:
    """(lane, colour, when) of everything that a step does."""
    yield "host", "launch", record.launch
    yield "host", "wait", record.wait
    yield "host", "commit", record.commit
    yield from (("upload", "copy", span) for span in record.uploads)
    yield "compute", "forward", record.forward
    if record.finalize is not None:
        yield "host", "finalize", record.finalize
    if record.sample is not None:
        yield "compute", "sample", record.sample
    if record.copy is not None:
        yield "readback", "copy", record.copy
