"""What a job will come to before it is run: what is known by its plan, and what is estimated, said to be so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from photon.audit.headers import Headers
from photon.errors import UsageError
from photon.job.progress import clock
from photon.job.record import RUN_JSON, RunRecord
from photon.manifest.manifest import Manifest
from photon.manifest.tasks import CaptionTask, Task
from photon.plan.growth import Growth
from photon.plan.ledger import Counts, Ledger
from photon.plan.plan import Plan

#: Bytes on disk, compressed: of a part with one task, of each further task in it, of a row without answers (its id, its
#: picture's digest), of one thing found (coordinates and scores) with so many to a request, and of a letter.
_PART, _PART_TASK, _ROW, _FOUND, _FOUND_EACH, _LETTER = 8000, 3000, 60, 32, 3, 0.4
_LETTERS = {"short": 120, "normal": 400, "long": 900}
_ANSWER_LETTERS = 60


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows a second of one process, and where that is known from."""

    rows_per_second: float
    origin: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """``grown`` rows have come to the input since it was planned, and are in the plan; where ``is_frozen`` is False,
    they wait for the processes at work to end. ``done`` rows are on disk. Bytes, seconds (of one process, for what is
    not done) and cost are estimates; None where nothing is known to make one from."""

    output: str
    job_id: str
    rows: int | None
    files: int
    chunks: int | None
    chunk_rows: int
    requests_per_row: int
    requests: int | None
    grown: int
    gone: int
    done: int
    is_new: bool
    is_frozen: bool
    headers: Headers
    tiled_by: str
    bytes: int | None
    rate: Rate | None
    seconds: float | None
    price_per_hour: float | None
    cost: float | None

    @property
    def is_done(self) -> bool:
        """Whether all planned rows are on disk."""
        return self.rows is not None and self.done >= self.rows

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "headers": self.headers.as_dict()}

    def text(self) -> str:
        """The lines that a person reads."""
        lines = [self._plan(), *self._growth()]
        lines.append(f"{_some(self.requests)} requests, {self.requests_per_row} for each image")
        lines += self._pictures()
        if self.bytes is not None:
            lines.append(f"{'' if self.is_done else 'estimate: '}{_size(self.bytes)} of results")
        return "\n".join([*lines, *self._time()])

    def _plan(self) -> str:
        what = "planned" if self.is_new else "the plan is there already"
        done = f", {self.done:,} done" if self.done else ""
        files = f"{self.files:,} {'file' if self.files == 1 else 'files'}"
        chunks = f"{_some(self.chunks)} {'chunk' if self.chunks == 1 else 'chunks'}"
        return (
            f"{self.output}: {what}: {_some(self.rows)} rows of {files} in {chunks} of {self.chunk_rows:,} rows{done}"
        )

    def _growth(self) -> list[str]:
        lines = []
        if self.grown:
            waits = "" if self.is_frozen else "; they are planned once no process is at work on the job any more"
            lines.append(f"{self.grown:,} rows have come to the input since it was planned{waits}")
        if self.gone:
            lines.append(f"{self.gone:,} files of the plan are not there any more")
        return lines

    def _pictures(self) -> list[str]:
        seen = self.headers
        if not seen.sampled:
            return []
        lines = [f"a sample of {seen.sampled:,} rows:"]
        if seen.sizes:
            least, middle, most = (f"{width}x{height}" for width, height in seen.sizes)
            lines.append(f"  images from {least} to {most}, the median has {middle}")
            total = sum(seen.tilings.values())
            told = ", ".join(f"{rows}x{columns} {count / total:.0%}" for (rows, columns), count in seen.tilings.items())
            lines.append(f"  tiles as {self.tiled_by} cuts them: {told}; {seen.crops:.1f} crops to an image")
        lines += [f"  {code}: {count:,}" for code, count in seen.codes.items()]
        return lines

    def _time(self) -> list[str]:
        if self.is_done:
            return ["nothing is left to do"]
        if self.rate is None:
            return ["no estimate of time: give --rate, --measure it, or plan again after a first run"]
        speed = f"{self.rate.rows_per_second:,.2f} images/s {self.rate.origin}"
        if self.seconds is None:
            return [f"no estimate of time: at {speed}, but how many rows there are is not known"]
        cost = "" if self.cost is None else f", {self.cost:,.2f} at {self.price_per_hour:g} an hour"
        return [f"estimate: {clock(self.seconds)} for one process at {speed}{cost}"]


@dataclass(frozen=True, slots=True)
class Known:
    """What an estimate is made from beside the plan."""

    growth: Growth
    is_new: bool
    is_frozen: bool
    headers: Headers
    tiled_by: str
    rate: Rate | None
    price_per_hour: float | None


def estimate(root: Path, manifest: Manifest, plan: Plan, known: Known) -> Estimate:
    """Of the job in ``root`` with the ``plan`` that is to be worked by."""
    done = Counts.of(records := list(Ledger.read(root).records.values()))
    each = sum(len(task.prompts) for task in manifest.tasks)
    rate = known.rate or _earlier_rate(root)
    left = None if plan.rows is None else plan.rows - done.rows
    seconds = None if rate is None or left is None else left / rate.rows_per_second
    price = known.price_per_hour
    return Estimate(
        output=str(root),
        job_id=plan.job_id,
        rows=plan.rows,
        files=len(plan.units),
        chunks=None if plan.is_endless else plan.chunks,
        chunk_rows=plan.chunk_rows,
        requests_per_row=each,
        requests=None if plan.rows is None else plan.rows * each,
        grown=known.growth.rows,
        gone=len(known.growth.gone),
        done=done.rows,
        is_new=known.is_new,
        is_frozen=known.is_frozen,
        headers=known.headers,
        tiled_by=known.tiled_by,
        bytes=_bytes(manifest.tasks, plan, done.rows, sum(record.bytes for record in records)),
        rate=rate,
        seconds=seconds,
        price_per_hour=price,
        cost=None if price is None or seconds is None else price * seconds / 3600,
    )


def given_rate(rows_per_second: float) -> Rate:
    """As of --rate. Raises ``UsageError`` for one that is no rate."""
    if not 0 < rows_per_second < float("inf"):
        raise UsageError(f"a rate is a number of images a second above 0, not {rows_per_second:g}; correct --rate")
    return Rate(rows_per_second, "(--rate)")


def _earlier_rate(root: Path) -> Rate | None:
    """That of the last run into the same folder, if it got anywhere."""
    told = RunRecord.read(root / RUN_JSON).get("shard") or {}
    rows, seconds = told.get("new_rows", 0), told.get("seconds", 0)
    return Rate(rows / seconds, f"(the last run, over {rows:,} rows)") if rows and seconds else None


def _bytes(tasks: Sequence[Task], plan: Plan, rows: int, written: int) -> int | None:
    """By the rows that are there, else by what answers come to."""
    if plan.rows is None:
        return None
    if rows:
        return round(written / rows * plan.rows)
    row = _ROW + sum(_answer_bytes(task) for task in tasks)
    return round(plan.rows * row + plan.chunks * (_PART + _PART_TASK * (len(tasks) - 1)))


def _answer_bytes(task: Task) -> float:
    if task.kind != "text":
        return len(task.prompts) * _FOUND * _FOUND_EACH
    return _LETTER * (_LETTERS[task.length] if isinstance(task, CaptionTask) else _ANSWER_LETTERS)


def _some(count: int | None) -> str:
    return "an unknown number of" if count is None else f"{count:,}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"
