"""What a run comes to: numbers for a program, and the lines that a person reads at the end."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from photon.engine.statistics import Statistics
from photon.job.tally import CodeCount

#: The exit code of a run that finished with more failures than its manifest allows.
OVER_BUDGET = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """``seconds`` is wall time from the first row read to the last part on disk, loading the model left out.

    ``meaningless`` is True for a model whose answers mean nothing, such as an untrained one. ``statistics`` are the
    engine's; None for one that takes no steps.
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

    @property
    def failure_rate(self) -> float:
        """Failed rows over rows; 0 for no rows."""
        return self.failed / self.rows if self.rows else 0.0

    @property
    def exit_code(self) -> int:
        """0, or 3 when more rows failed than ``errors.max_failure_rate`` allows."""
        return OVER_BUDGET if self.failure_rate > self.max_failure_rate else 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **asdict(self),
            "statistics": None if self.statistics is None else self.statistics.as_dict(),
            "failure_rate": self.failure_rate,
            "images_per_second": round(self._rate(self.rows), 3),
            "requests_per_second": round(self._rate(self.requests), 3),
            "exit_code": self.exit_code,
        }

    def text(self) -> str:
        """The closing lines for a person."""
        lines = [f"{self.rows:,} rows: {self.ok:,} ok, {self.failed:,} failed{self._verdict()}"]
        width = max((len(code.code) for code in self.codes), default=0)
        lines += [
            f"  {code.code:<{width}}  {code.count:>6,}  first: row {code.row_id}: {code.message}" for code in self.codes
        ]
        lines.append(
            f"{self.requests:,} requests answered, {self.found:,} objects and points found; "
            f"{self.seconds:.1f} s, {self._rate(self.rows):.1f} images/s, {self._rate(self.requests):.1f} requests/s"
        )
        if self.statistics is not None and any(self.statistics.steps.values()):
            lines.append(self.statistics.text())
        lines += self._where()
        if self.meaningless:
            lines.append(
                f"NOTE: {self.model} is not a trained model; its answers are meaningless and only show the format."
            )
        return "\n".join(lines)

    def _rate(self, count: int) -> float:
        return count / self.seconds if self.seconds > 0 else 0.0

    def _verdict(self) -> str:
        if not self.failed:
            return ""
        compare = "over" if self.exit_code else "within"
        return f" ({self.failure_rate:.2%}, {compare} the budget of {self.max_failure_rate:.2%})"

    def _where(self) -> list[str]:
        if not self.rows:
            return ["the input has no rows; nothing was written"]
        data = str(Path(self.output) / "data")
        opened = (
            f"import pyarrow.dataset as ds; print(ds.dataset({data!r}, format='ipc').to_table().to_pandas())"
            if self.ipc == "file"
            else f"from datasets import load_dataset; print(load_dataset('arrow', data_files={data + '/*.arrow'!r}))"
        )
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1_000_000 else f"{self.bytes / 1e3:.1f} kB"
        files = "part file" if self.parts == 1 else "part files"
        return [f"results: {data} ({self.parts:,} {files}, {size}); to open them:", f'  {_python()} -c "{opened}"']


def _python() -> str:
    """This interpreter, as a shell that stands here would call it: the one that has pyarrow."""
    beside = os.path.relpath(sys.executable)
    return sys.executable if beside.startswith("..") else beside
