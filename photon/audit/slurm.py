"""A job as a Slurm array: the script that sbatch takes, and which of its elements have something left to do. Calls no
Slurm.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from photon.audit.standing import Standing
from photon.data.disk import blaming
from photon.data.writer import part_name
from photon.errors import UsageError
from photon.job.folder import OutputFolder
from photon.job.record import RunRecord
from photon.plan.shard import Shard

log = logging.getLogger(__name__)

#: Slurm's default: one more than the highest element that an array may have.
MAX_ARRAY_SIZE = 1001
_VALUE = re.compile(r"[^\s#'\"\\]+")


@dataclass(frozen=True, slots=True)
class Array:
    """What one sbatch submits: element i does shard ``offset`` + i."""

    offset: int
    elements: tuple[int, ...]

    def expression(self, max_running: int | None = None) -> str:
        """As --array takes it: 3,7-9, and %K for at most so many at a time."""
        return ",".join(_ranges(self.elements)) + (f"%{max_running}" if max_running is not None else "")

    def options(self, max_running: int | None = None) -> str:
        """Those of sbatch."""
        shifted = f"--export=ALL,PHOTON_BATCH_SHARD_OFFSET={self.offset} " if self.offset else ""
        return f"{shifted}--array={self.expression(max_running)}"


def arrays(shards: Iterable[int], max_array_size: int = MAX_ARRAY_SIZE) -> list[Array]:
    """``shards``, ascending, as few arrays as Slurm allows."""
    blocks = groupby(shards, lambda shard: shard // max_array_size)
    return [
        Array(block * max_array_size, tuple(shard - block * max_array_size for shard in found))
        for block, found in blocks
    ]


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Ascending numbers, those that follow each other as one range."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}"


@dataclass(frozen=True, slots=True)
class Script:
    """What a script asks of Slurm. ``tasks`` is the number of shards, ``max_running`` how many run at a time; what is
    None is left to the cluster. ``requeues``: an element that is stopped puts itself back into the queue."""

    manifest: str
    tasks: int
    max_running: int | None = None
    max_array_size: int = MAX_ARRAY_SIZE
    time: str | None = None
    partition: str | None = None
    gpus: int | None = None
    cpus: int | None = None
    requeues: bool = False

    def __post_init__(self) -> None:
        for name, value in (("--time", self.time), ("--partition", self.partition)):
            if value is not None and not _VALUE.fullmatch(value):
                raise UsageError(f"{name} {value!r} does not fit an #SBATCH line; write one word without quotes")

    @property
    def job_name(self) -> str:
        return re.sub(r"[^\w.-]+", "-", Path(self.manifest).stem)

    def text(self) -> str:
        """The script, for ``sbatch FILE``."""
        blocks = [self._head(), self._environment(), self._call()]
        return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"

    def write(self, path: Path) -> None:
        """A new file. Raises ``UsageError`` where there is one, ``OutputError`` where the system refuses."""
        with blaming(path):
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(self.text())
            except FileExistsError:
                raise UsageError(f"{path} is there already; choose another --out, or remove it") from None

    def _head(self) -> list[str]:
        first, *more = arrays(range(self.tasks), self.max_array_size)
        wanted = {"time": self.time, "partition": self.partition, "gpus": self.gpus, "cpus-per-task": self.cpus}
        return [
            "#!/bin/bash",
            f"# {self.manifest} as a Slurm array: element i does shard i of {self.tasks}.",
            f"#SBATCH --job-name={self.job_name}",
            f"#SBATCH --array={first.expression(self.max_running)}",
            *self._told_of(more),
            "# An element that is pre-empted, or whose node fails, goes back into the queue. It goes on where it was.",
            "#SBATCH --requeue",
            "# Its lives share a log, which lies where sbatch is called: Slurm makes no folders.",
            "#SBATCH --open-mode=append",
            "#SBATCH --output=%x-%A_%a.log",
            "# Two minutes before the time limit: time to finish what is in flight and to end with code 75.",
            "#SBATCH --signal=USR1@120",
            *(f"#SBATCH --{name}={value}" for name, value in wanted.items() if value is not None),
        ]

    def _told_of(self, more: Collection[Array]) -> list[str]:
        if not more:
            return []
        told = "# These are as many as one array may have. To submit the others, with this script in FILE:"
        return [told, *(f"#   sbatch {array.options(self.max_running)} FILE" for array in more)]

    def _environment(self) -> list[str]:
        return [
            "# So the division stays as it is when only a few elements are submitted again.",
            f"export PHOTON_BATCH_SHARDS={self.tasks}",
            "# srun does not take the number of CPUs over from sbatch.",
            'if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi',
        ]

    def _call(self) -> list[str]:
        run = f"photon-batch run {shlex.quote(self.manifest)} --no-progress --grace 20"
        requeue = [
            "# Asked to stop before its end: this element, and not the whole array, goes back into the queue.",
            'if [ "$code" -eq 75 ]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"; fi',
        ]
        return [
            "# By srun, as the USR1 above is for the steps of a job and for nothing else that its script starts.",
            "# --grace: Slurm kills 30 seconds (its KillWait) after it asks.",
            "# --steal in a second life: the first is over, even if it was killed before it could give its shard back.",
            f"srun {run} ${{SLURM_RESTART_COUNT:+--steal}}",
            "code=$?",
            *(requeue if self.requeues else ()),
            'exit "$code"',
        ]


def missing_shards(root: Path, count: int) -> list[int]:
    """Which of ``count`` shards have chunks to do, by the plan and the ledger in ``root``.

    Raises ``UsageError`` where there is no plan, or one that cannot be sharded; ``OutputError`` where they cannot be
    read. Warns of those that someone is at work on.
    """
    standing = Standing.read(root, units=False)
    for owner in standing.live:
        log.warning("%s is at work on shard %s, so leave that out, or wait for it", owner.told, owner.shard)
    plan, records = standing.plan, standing.ledger.records
    if plan.is_endless:
        raise UsageError("how many rows this input has is not known before it is read, so it is not done in shards")
    folder = OutputFolder(standing.root)
    making = RunRecord.read(folder.record).get("making")
    parts = {path.name for path in folder.data.iterdir()} if folder.data.is_dir() else set()

    def is_done(chunk: int) -> bool:
        record = records.get(chunk)
        return record is not None and record.making == making and part_name(chunk) in parts

    return [number for number in range(count) if not all(map(is_done, Shard(number, count).of(plan.chunks)))]
