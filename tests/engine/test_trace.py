"""Traces: what overlaps and what does not, the sums, the file, and the six-request run that docs/engine.md explains."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from photon.core import Result
from photon.device.threads import ThreadDevice
from photon.device.virtual import HostCosts
from photon.engine.loop import Loop
from photon.engine.record import StepRecord
from photon.engine.step import Step
from photon.engine.trace_file import LANES, TraceFile
from photon.errors import OutputError
from tests.engine import micro, scripted
from tests.engine.scripted import MILLISECOND, Ask

FIXTURE = Path(__file__).parent / "fixtures" / "six_requests.txt"
DOCUMENT = Path(__file__).parents[2] / "docs" / "engine.md"
#: A host that takes longer over a commit than the device over a step: what waits for the commit shows.
SLOW_HOST = HostCosts(launch=0.01 * MILLISECOND, commit=4 * MILLISECOND)
#: Between the two: what grammars wait for shows, what text waits for does not.
SIX_HOST = HostCosts(launch=0.01 * MILLISECOND, commit=1.5 * MILLISECOND)
SIX = (
    Ask("a", 4, picture=1, held=True),
    Ask("b", 2, picture=1, held=True),
    Ask("c", 6, picture=2),
    Ask("d", 2, picture=2, held=True),
    Ask("e", 3, told=True),
    Ask("f", 2, picture=1, held=True),
)


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def sampling(records: list[StepRecord]) -> list[tuple[StepRecord, StepRecord]]:
    """Each two steps in a row that sample."""
    pairs = [(a, b) for a, b in pairwise(records) if a.sample and b.sample]
    assert len(pairs) > 3
    return pairs


def test_text_is_sampled_before_the_commit_of_the_step_before(patch: pytest.MonkeyPatch) -> None:
    records, _ = scripted.records([Ask(id, 6) for id in "abc"], patch, host=SLOW_HOST)
    for before, after in sampling(records):
        assert after.sample
        assert after.finalize
        assert after.finalize.end <= before.wait.start
        assert after.sample.start < before.commit.end


def test_grammars_are_sampled_after_the_commit_of_the_step_before(patch: pytest.MonkeyPatch) -> None:
    records, _ = scripted.records([Ask(id, 6, held=True) for id in "abc"], patch, host=SLOW_HOST)
    for before, after in sampling(records):
        assert after.sample
        assert after.finalize
        assert after.finalize.start >= before.commit.end
        assert after.sample.start >= before.commit.end
        assert after.forward.start < before.commit.end, "the forward does not wait for the mask"


def test_a_prefill_is_launched_while_the_other_slots_decode_is_uncommitted(patch: pytest.MonkeyPatch) -> None:
    records, _ = scripted.records(SIX, patch, max_batch=3)
    overlaps = [(a, b) for a, b in pairwise(records) if (a.kind, b.kind) == ("decode", "prefill")]
    assert overlaps
    for decode, prefill in overlaps:
        assert {decode.slot, prefill.slot} == {0, 1}
        assert prefill.launch.end <= decode.wait.start < decode.commit.end
        assert prefill.forward.start <= decode.commit.end


def test_nothing_overlaps_at_depth_1(patch: pytest.MonkeyPatch) -> None:
    records, engine = scripted.records(SIX, patch, max_batch=3, depth=1)
    for before, after in pairwise(records):
        assert after.launch.start >= before.commit.end
        assert after.forward.start >= before.commit.end
        assert after.idle > 0
    assert engine.statistics.zombie_rows == 0


@pytest.mark.parametrize("depth", [1, 2])
def test_busy_and_idle_are_all_of_the_wall(patch: pytest.MonkeyPatch, depth: int) -> None:
    records, engine = scripted.records(SIX, patch, max_batch=3, depth=depth)
    wall = max(r.sample.end if r.sample else r.forward.end for r in records) - records[0].forward.start
    busy, idle = sum(r.busy for r in records), sum(r.idle + r.held for r in records)
    statistics = engine.statistics
    assert busy + idle == pytest.approx(wall)
    assert (statistics.wall_seconds, statistics.busy_seconds) == pytest.approx((wall, busy))
    assert statistics.idle_ms_per_step == pytest.approx(1e3 * idle / len(records))
    costs = {"vision": 3.0, "prefill": 2.2, "decode": 1.2}
    assert busy == pytest.approx(sum(count * costs[kind] for kind, count in statistics.steps.items()) * MILLISECOND)


def test_a_step_ahead_leaves_less_idle(patch: pytest.MonkeyPatch) -> None:
    asks = [Ask(id, 20) for id in "abc"]
    idle = [scripted.records(asks, patch, depth=depth)[1].statistics.idle_ms_per_step for depth in (1, 2)]
    assert idle[0] > 0.3, "a commit and more"
    assert idle[1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("told", "depth", "zombies"), [(False, 2, 3), (True, 2, 0), (False, 1, 0)])
def test_zombies(patch: pytest.MonkeyPatch, told: bool, depth: int, zombies: int) -> None:
    """An end that only the last token tells costs the row of one step; one that the count tells costs none."""
    asks = [Ask("a", 2, told=told), Ask("b", 3, told=told), Ask("c", 5, held=True, told=told)]
    records, engine = scripted.records(asks, patch, depth=depth)
    assert sum(r.tokens for r in records) == 10
    statistics = engine.statistics
    assert statistics.zombie_rows == sum(r.zombies for r in records) == zombies
    assert statistics.rows == 10 + zombies
    assert statistics.zombie_share == pytest.approx(zombies / (10 + zombies))
    by_share = sum(r.busy * r.zombies / r.rows for r in records)
    assert statistics.zombie_seconds == pytest.approx(by_share)
    if zombies:  # step 3 has a's among three rows, step 4 b's among two, and the last nothing but c's
        assert by_share == pytest.approx((1 / 3 + 1 / 2 + 1) * 1.2 * MILLISECOND)


def test_prefixes_are_counted_once_and_reused(patch: pytest.MonkeyPatch) -> None:
    asks = [Ask(f"{picture}{k}", 2, picture=picture) for picture in (0, 1) for k in range(5)]
    records, engine = scripted.records([*asks, Ask("bare", 2)], patch, max_batch=3)
    statistics = engine.statistics
    assert sum(r.prefixes for r in records) == statistics.prefixes == 2
    assert statistics.requests_on_images == 10
    assert statistics.requests_per_prefix == 5.0
    decodes = [r for r in records if r.kind == "decode"]
    assert statistics.steps["decode"] == len(decodes)
    assert statistics.rows_per_decode_step == pytest.approx(sum(r.rows for r in decodes) / len(decodes))


def test_statistics_are_kept_without_a_trace_and_begin_anew_with_each_run(patch: pytest.MonkeyPatch) -> None:
    engine = scripted.engine(SIX, patch, max_batch=3, host=SIX_HOST)
    assert sum(engine.statistics.steps.values()) == 0
    assert engine.statistics.busy_share == 0.0
    list(engine.run(ask.request() for ask in SIX))
    first = engine.statistics
    list(engine.run(ask.request() for ask in SIX))
    assert engine.statistics.as_dict() == first.as_dict()
    assert 0.5 < first.busy_share < 1.0
    assert first.text() == FIXTURE.read_text().rstrip("\n").rpartition("\n\n")[2]


def events_of(path: Path) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(path.read_text())
    return made


def check_format(events: list[dict[str, Any]]) -> None:
    """As documented for Chrome's trace event format."""
    for event in events:
        assert {"name", "ph", "ts", "pid", "tid"} <= event.keys()
        assert event["ph"] in "XMstf"
        assert event["tid"] in (0, *LANES.values())
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["ts"] >= 0
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {lane: name for name, lane in LANES.items()}


def test_the_file_that_perfetto_opens(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    records, _ = scripted.records(SIX, patch, max_batch=3)
    with TraceFile(tmp_path / "trace.json") as file:
        for record in records:
            file.write(record)
    events = events_of(tmp_path / "trace.json")
    check_format(events)
    slices = [event for event in events if event["ph"] == "X"]
    decode = records[-1]
    (forward,) = [e for e in slices if e["args"]["step"] == decode.number and e["name"] == "decode"]
    assert forward["tid"] == LANES["compute"]
    assert forward["ts"] == pytest.approx((decode.forward.start - records[0].launch.start) * 1e6, abs=1e-3)
    assert forward["dur"] == pytest.approx(1000.0)
    assert {k: forward["args"][k] for k in ("kind", "rows", "zombies", "slot")} == {
        "kind": "decode",
        "rows": decode.rows,
        "zombies": decode.zombies,
        "slot": decode.slot,
    }
    for lane in LANES.values():  # no two slices of a lane overlap, so that each is shown as it is
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == lane)
        assert all(before[1] <= after[0] + 1e-3 for before, after in pairwise(spans))
    arrows = [(e["id"], e["ph"]) for e in events if e["ph"] in "stf"]
    assert arrows == [(record.number, phase) for record in records for phase in "stf"]


def test_the_file_of_a_run_that_was_killed(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without its end it lacks the bracket, which the format allows."""
    records, _ = scripted.records(SIX, patch, max_batch=3)
    file = TraceFile(tmp_path / "trace.json")
    for record in records:
        file.write(record)
    file._file.flush()
    text = (tmp_path / "trace.json").read_text()
    file.close()
    assert events_of(tmp_path / "trace.json") == json.loads(text + "]")


def test_a_file_that_cannot_be_written(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write the trace .*nowhere/t.json: No such file or directory"):
        TraceFile(tmp_path / "nowhere" / "t.json")
    if Path("/dev/full").exists():
        engine = scripted.engine(SIX, patch)
        with (
            pytest.raises(OutputError, match="cannot write the trace /dev/full: No space left"),
            TraceFile("/dev/full") as file,
        ):
            list(engine.run((ask.request() for ask in SIX), trace=file.write))


def test_on_threads(tmp_path: Path) -> None:
    """The same on the clock of a real device."""
    engine = micro.engine(ThreadDevice())
    gathered: list[StepRecord] = []
    asked = [micro.request(i, ("detect", "query")[i % 2], i % 3, i) for i in range(12)]
    list(engine.run(asked, trace=gathered.append))
    engine.close()
    with TraceFile(tmp_path / "trace.json") as file:
        for record in gathered:
            file.write(record)
    check_format(events_of(tmp_path / "trace.json"))
    for record in gathered:
        assert record.launch.start <= record.uploads[0].start
        assert record.uploads[0].end <= record.forward.start
        assert record.forward.end <= record.wait.end <= record.commit.end
        assert record.idle >= 0
        if record.sample:
            assert record.copy
            assert record.forward.end <= record.sample.start
            assert record.sample.end <= record.copy.start
    assert engine.statistics.busy_seconds == pytest.approx(sum(r.busy for r in gathered))


class ToldLoop(Loop):
    """Writes a line for every step: the tick of its launch, its rows, whether it was sampled ahead of that tick's
    commit or after it, and the tick and the outcome of its own commit."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lines: list[str] = []
        self._tick = 0
        self._launched: dict[Step, int] = {}
        self._sampled: dict[Step, str] = {}
        self._committing = 0

    def tick(self, inflight: Step | None) -> Step | None:
        self._tick += 1
        return super().tick(inflight)

    def launch(self) -> Step | None:
        step = super().launch()
        if step is not None:
            self._launched[step] = self._tick
        return step

    def finalize(self, step: Step) -> None:
        super().finalize(step)
        if step.sampled is not None:
            self._sampled[step] = "after" if self._committing == self._tick else "ahead"

    def commit(self, step: Step) -> None:
        rows = [(str(s.request.id), s.committed + 1, s.finalized) for s in step.sequences]
        told = len(self.results)
        super().commit(step)
        self._committing = self._tick
        self.lines.append(self._line(step, rows, list(self.results)[told:]))

    def _line(self, step: Step, rows: list[tuple[str, int, bool]], results: list[Result]) -> str:
        asked = " ".join(f"{id}*" if zombie else id for id, _, zombie in rows)
        pictures = f"[{' '.join(map(_picture, step.pictures))}]" if step.pictures else ""
        tokens = " ".join(f"{id}{nth}" for id, nth, zombie in rows if not zombie)
        emitted = " ".join(str(result.id) for result in results)
        launched, slot = self._launched[step], self._slots._all.index(step.slot)
        line = f"{launched:>4}  {slot:>4}  {step.kind:<7}  {f'{pictures} {asked}'.strip():<11}"
        return f"{line}  {self._sampled.get(step, ''):<7}  {self._tick:>6}  {tokens:<9}  {emitted}".rstrip()


def _picture(picture: Any) -> str:
    return next(name for name, n in (("P", 1), ("Q", 2)) if picture.prepared.image is micro.image(n))


HEAD = "tick  slot  step     rows         sampled  commit  tokens     emitted"


def test_six_requests(patch: pytest.MonkeyPatch) -> None:
    """Compared literally: what the loop does is documented line by line in docs/engine.md."""
    loops: list[ToldLoop] = []

    def told(*given: Any) -> ToldLoop:
        loops.append(ToldLoop(*given))
        return loops[-1]

    patch.setattr("photon.engine.engine.Loop", told)
    engine = scripted.engine(SIX, patch, max_batch=3, host=SIX_HOST)
    list(engine.run(ask.request() for ask in SIX))
    (loop,) = loops
    fixture = FIXTURE.read_text()
    assert "\n".join([HEAD, *loop.lines, "", engine.statistics.text(), ""]) == fixture
    assert fixture.partition("\n\n")[0] in DOCUMENT.read_text(encoding="utf-8")
