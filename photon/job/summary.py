"""What a run comes to: numbers for a program, and the lines that a person reads at the end."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from photon.engine.statistics import Statistics
from photon.job.folder import OutputFolder
from photon.job.tally import CodeCount, code_lines
from photon.manifest.manifest import Manifest
from photon.plan.ledger import Counts, Record

#: The exit code of a run that finished with more failures than its manifest allows.
OVER_BUDGET = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """``seconds`` is wall time from the first row read to the last part on disk, loading the model left out.

    ``rows`` and what they came to are the shard's, of which ``new_rows`` are of this run. ``stopped_with`` is the exit
    code of a run that ended early. ``meaningless`` is True for a model whose answers mean nothing, such as an untrained
    one. ``statistics`` are the engine's; None for one that takes no steps.
    """

    rows: int
    ok: int
    failed: int
    requests: int
    found: int
    seconds: float
    codes: tuple[CodeCount, ...]
    parts: int
    bytes: int
    output: str
    ipc: Literal["file", "stream"]
    max_failure_rate: float
    model: str
    meaningless: bool
    statistics: Statistics | None = None
    new_rows: int = 0
    odd_orientations: int = 0
    state: str = "finished"
    stopped_with: int | None = None

    @property
    def failure_rate(self) -> float:
        """Failed rows over rows; 0 for no rows."""
        return self.failed / self.rows if self.rows else 0.0

    @property
    def exit_code(self) -> int:
        """0; 3 when more rows failed than ``errors.max_failure_rate`` allows; that of an early end."""
        if self.stopped_with is not None:
            return self.stopped_with
        return OVER_BUDGET if self.failure_rate > self.max_failure_rate else 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **asdict(self),
            "statistics": None if self.statistics is None else self.statistics.as_dict(),
            "failure_rate": self.failure_rate,
            "images_per_second": round(self._rate(self.new_rows), 3),
            "requests_per_second": round(self._rate(self.requests), 3),
            "exit_code": self.exit_code,
        }

    def text(self, columns: int | None = None) -> str:
        """The closing lines for a person, on a terminal so wide; None leaves lines as long as they are."""
        lines = [f"{self.rows:,} rows: {self.ok:,} ok, {self.failed:,} failed{self._verdict()}"]
        lines += self._earlier()
        lines += code_lines(self.codes)
        if self.odd_orientations:
            lines.append(f"{self.odd_orientations:,} pictures with an EXIF orientation that is none, taken as stored")
        lines.append(
            f"{self.requests:,} requests answered, {self.found:,} objects and points found; "
            f"{self.seconds:.1f} s, {self._rate(self.new_rows):.1f} images/s, "
            f"{self._rate(self.requests):.1f} requests/s"
        )
        if self.statistics is not None and any(self.statistics.steps.values()):
            lines.append(self.statistics.text())
        *where, command = self._where()  # the command stays whole, to be copied
        lines = [*(fitted(line, columns) for line in "\n".join([*lines, *where]).splitlines()), command]
        if self.meaningless:
            note = f"NOTE: {self.model} is not a trained model; its answers are meaningless and only show the format."
            lines.append(fitted(note, columns))
        return "\n".join(lines)

    def _earlier(self) -> list[str]:
        if self.state == "preempted":
            return ["stopped before the end; the same command goes on"]
        if self.new_rows == self.rows:
            return []
        if not self.new_rows:
            return ["nothing was left to do"]
        return [f"{self.new_rows:,} of them in this run, the others before"]

    def _rate(self, count: int) -> float:
        return count / self.seconds if self.seconds > 0 else 0.0

    def _verdict(self) -> str:
        if not self.failed:
            return ""
        compare = "over" if self.failure_rate > self.max_failure_rate else "within"
        return f" ({self.failure_rate:.2%}, {compare} the budget of {self.max_failure_rate:.2%})"

    def _where(self) -> list[str]:
        if not self.rows:
            return ["the input, or this shard of it, has no rows; nothing was written"]
        data = str(Path(self.output) / "data")
        opened = (
            f"import pyarrow.dataset as ds; print(ds.dataset({data!r}, format='ipc').to_table().to_pandas())"
            if self.ipc == "file"
            else f"from datasets import load_dataset; print(load_dataset('arrow', data_files={data + '/*.arrow'!r}))"
        )
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1_000_000 else f"{self.bytes / 1e3:.1f} kB"
        files = "part file" if self.parts == 1 else "part files"
        return [f"results: {data} ({self.parts:,} {files}, {size}); to open them:", f'  {_python()} -c "{opened}"']


def with_earlier(codes: Iterable[CodeCount], counts: Mapping[str, int]) -> tuple[CodeCount, ...]:
    """This run's ``codes`` with the ``counts`` of all the shard's rows, and those of earlier runs alone."""
    ours = {code.code: code for code in codes}
    made = [
        CodeCount(code.code, counts.get(code.code, code.count), code.row_id, code.message) for code in ours.values()
    ]
    earlier = sorted(set(counts) - set(ours))
    return (*made, *(CodeCount(code, counts[code], "", "in an earlier run, see quarantine") for code in earlier))


def done_already(
    manifest: Manifest, records: Sequence[Record], folder: OutputFolder, model: Mapping[str, Any]
) -> Summary:
    """Of a job that has nothing left to do. ``model``: the facts that run.json has of it."""
    counts = Counts.of(records)
    return Summary(
        rows=counts.rows,
        ok=counts.ok,
        failed=counts.failed,
        requests=0,
        found=counts.found,
        seconds=0.0,
        codes=with_earlier((), counts.codes),
        parts=sum(record.rows > 0 for record in records),
        bytes=sum(record.bytes for record in records),
        output=str(folder.root),
        ipc=manifest.output.ipc,
        max_failure_rate=manifest.errors.max_failure_rate,
        model=manifest.model.path,
        meaningless=bool(model.get("meaningless")),
    )


def fitted(line: str, columns: int | None) -> str:
    """``line`` in so many ``columns``: broken between words or, where it is indented as one of a list, cut short."""
    if columns is None or len(line) <= columns:
        return line
    if line.startswith(" "):
        return line[: max(columns - 1, 1)] + "…"
    return textwrap.fill(line, max(columns, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _python() -> str:
    """This interpreter, as a shell that stands here would call it: the one that has pyarrow."""
    beside = os.path.relpath(sys.executable)
    return sys.executable if beside.startswith("..") else beside
