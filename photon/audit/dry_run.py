"""A run without the model: a sample of rows, from all over the input, is read, decoded and has its prompts filled.

Writes nothing. Whether a prompt is too long for the model, only the model can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from photon.audit.spread import spread_rows
from photon.core import Failure
from photon.data.row import Row
from photon.errors import ImageError
from photon.images.decode import DecodePolicy, decode
from photon.job.folder import OutputFolder
from photon.job.measure import CHUNK_ROWS
from photon.job.planning import Planned, new_plan, open_plan
from photon.job.questions import Asked, Questions, RequestId
from photon.job.sources import open_source
from photon.job.summary import OVER_BUDGET
from photon.job.tally import CodeCount, code_lines
from photon.manifest.manifest import Manifest

#: Rows that are tried; fewer where each picture has to be fetched.
SAMPLE, _FETCHED = 120, 24
#: Filled prompts that are shown of each task.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DryRun:
    """``rows`` are the plan's, None where only reading tells; ``sampled`` of them were tried, ``ok`` could be asked.
    ``prompts`` are some of each task's, filled in; none for a task that has none."""

    output: str
    rows: int | None
    sampled: int
    ok: int
    requests: int
    prompts: Mapping[str, tuple[str, ...]]
    codes: tuple[CodeCount, ...]
    max_failure_rate: float

    @property
    def failed(self) -> int:
        return self.sampled - self.ok

    @property
    def exit_code(self) -> int:
        """0; 3 where more of the sample failed than ``errors.max_failure_rate`` allows."""
        return OVER_BUDGET if self.failed > self.max_failure_rate * self.sampled else 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "dry_run": True, "failed": self.failed, "exit_code": self.exit_code}

    def text(self) -> str:
        """The lines that a person reads."""
        rows = "an unknown number of" if self.rows is None else f"{self.rows:,}"
        budget = "over" if self.exit_code else "within"
        lines = [
            f"dry run: {self.sampled:,} of {rows} rows tried, {self.requests:,} requests filled: {self.ok:,} ok, "
            f"{self.failed:,} failed ({budget} the budget of {self.max_failure_rate:.2%}); nothing was written"
        ]
        lines += code_lines(self.codes)
        for task, prompts in self.prompts.items():
            lines.append(f"{task}: {' · '.join(prompts) if prompts else 'asks without a prompt'}")
        return "\n".join(lines)


def dry_run(manifest: Manifest, *, limit: int | None = None, fresh: bool = False) -> DryRun:
    """Tries ``manifest`` on a sample. ``limit`` and ``fresh`` as of ``run``: without ``fresh``, a plan that is there
    has to fit. Raises ``UsageError``, ``InputError`` and ``OutputError`` as ``run`` does before it loads the model."""
    if limit is not None:
        manifest = manifest.with_limit(limit)
    folder = OutputFolder(manifest.output.dir)
    source = open_source(manifest)
    folder.check(fresh)
    planned = new_plan(manifest, source) if fresh else open_plan(folder.root, manifest, source)
    found = _Found(manifest)
    for place, row in enumerate(_sample(manifest, planned)):
        asked = found.questions.about(row, place)
        found.note(row.row_id, asked, asked.failed or found.unreadable(row.image))
    return DryRun(
        output=str(folder.root),
        rows=planned.plan.rows,
        sampled=found.sampled,
        ok=found.ok,
        requests=found.requests,
        prompts={name: tuple(prompts) for name, prompts in found.prompts.items()},
        codes=tuple(found.codes.values()),
        max_failure_rate=manifest.errors.max_failure_rate,
    )


def _sample(manifest: Manifest, planned: Planned) -> Iterator[Row]:
    plan = replace(planned.plan, chunk_rows=CHUNK_ROWS) if planned.is_new else planned.plan
    count = _FETCHED if manifest.input.urls.fetch else SAMPLE
    return spread_rows(planned.source, plan, count, planned.growth.gone)


class _Found:
    """What the rows of a sample come to."""

    def __init__(self, manifest: Manifest) -> None:
        self.questions = Questions(manifest.tasks, manifest.run.seed)
        self.prompts: dict[str, list[str]] = {task.name: [] for task in manifest.tasks}
        self.codes: dict[str, CodeCount] = {}
        self.sampled = self.ok = self.requests = 0
        self._names = list(self.prompts)
        self._policy = DecodePolicy(**manifest.image.model_dump())

    def unreadable(self, image: Any) -> Failure | None:
        try:
            decode(image.source, self._policy)
        except ImageError as error:
            return Failure(error.code, str(error))
        return None

    def note(self, row_id: str, asked: Asked, failed: Failure | None) -> None:
        """One row. Its failure is its image's, else that of its first task which cannot be asked, as in a run."""
        self.sampled += 1
        self.requests += len(asked.requests)
        for request in asked.requests:
            _, number, _ = cast(RequestId, request.id)
            shown = self.prompts[self._names[number]]
            if request.prompt and request.prompt not in shown and len(shown) < _SHOWN:
                shown.append(request.prompt)
        failure = failed or next((asked.failures[number] for number in sorted(asked.failures)), None)
        if failure is None:
            self.ok += 1
            return
        message = " ".join(failure.message.split())
        known = self.codes.setdefault(failure.code, CodeCount(failure.code, 0, row_id, message))
        known.count += 1
