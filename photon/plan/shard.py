"""Which part of the plan this process does: shard i of N, each an unbroken stretch of chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from photon.errors import UsageError

_SPELLED = re.compile(r"(\d+)/(\d+)")
_OWN = ("PHOTON_BATCH_SHARD", "PHOTON_BATCH_SHARDS")
_SLURM, _OFFSET = "SLURM_ARRAY_TASK_", "PHOTON_BATCH_SHARD_OFFSET"


@dataclass(frozen=True, slots=True)
class Shard:
    """``number`` counts from 0 to ``count`` - 1."""

    number: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 <= self.number < self.count:
            raise UsageError(f"there is no shard {self.number} of {self.count}; shards count from 0 to N - 1")

    @property
    def name(self) -> str:
        return f"{self.number:04d}-of-{self.count:04d}"

    def of(self, chunks: int) -> range:
        """Its numbers out of ``chunks``. Shards of one count share all of them out, as evenly as can be."""
        return range(chunks * self.number // self.count, chunks * (self.number + 1) // self.count)

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``i/N`` as of --shard. Raises ``UsageError``."""
        found = _SPELLED.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"a shard is written i/N, for example 0/8 for the first of eight, not {text!r}")
        return cls(int(found[1]), int(found[2]))


def shard_from(given: str | None, environment: Mapping[str, str]) -> Shard:
    """``given`` by --shard, else what ``environment`` says: PHOTON_BATCH_SHARD and PHOTON_BATCH_SHARDS, else a Slurm
    array's or step's variables, else torchrun's RANK and WORLD_SIZE; else all of it. Raises ``UsageError`` where
    --shard and PHOTON_BATCH_SHARD differ, or an array's variables cannot be used."""
    own = _own(environment)
    if given is not None:
        shard = Shard.parse(given)
        if own is not None and own != shard:
            raise UsageError(
                f"--shard says {shard.number}/{shard.count} and PHOTON_BATCH_SHARD {own.number}/{own.count}; drop one"
            )
        return shard
    return own or _array(environment) or _ranks(environment) or Shard()


def _own(environment: Mapping[str, str]) -> Shard | None:
    number, count = (environment.get(name) for name in _OWN)
    if number is None:
        return None
    if "/" in number:
        return Shard.parse(number)
    if count is None:
        raise UsageError("PHOTON_BATCH_SHARD is set without PHOTON_BATCH_SHARDS; write PHOTON_BATCH_SHARD=i/N")
    return Shard(_whole("PHOTON_BATCH_SHARD", number), _whole("PHOTON_BATCH_SHARDS", count))


def _array(environment: Mapping[str, str]) -> Shard | None:
    """An element of a Slurm array. A resubmission of a few elements has another count, so the script that we write sets
    PHOTON_BATCH_SHARDS; without it the count is the array's own, which then has to begin at 0 in steps of 1."""
    if f"{_SLURM}ID" not in environment:
        return None
    task = _variable(environment, f"{_SLURM}ID")
    if "PHOTON_BATCH_SHARDS" in environment:
        offset = _variable(environment, _OFFSET, 0)
        return Shard(task + offset, _variable(environment, "PHOTON_BATCH_SHARDS"))
    if _OFFSET in environment:
        raise UsageError(f"{_OFFSET} is set without PHOTON_BATCH_SHARDS; set that to the number of shards")
    least, count = _variable(environment, f"{_SLURM}MIN", 0), _variable(environment, f"{_SLURM}COUNT", 1)
    most, step = _variable(environment, f"{_SLURM}MAX", least), _variable(environment, f"{_SLURM}STEP", 1)
    if (least, step) != (0, 1) or most - least + 1 != count:
        raise UsageError(
            f"a Slurm array of {count} elements from {least} to {most} does not say how many shards there are; set "
            "PHOTON_BATCH_SHARDS to their number, or use the script that photon-batch slurm script writes"
        )
    return Shard(task, count)


def _ranks(environment: Mapping[str, str]) -> Shard | None:
    """Processes of one torchrun or srun. Not SLURM_NTASKS, the allocation's: a batch script, which runs once, has it
    too, and would do one shard of many."""
    for rank, world in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
        if rank in environment and world in environment:
            return Shard(_variable(environment, rank), _variable(environment, world))
    return None


def _variable(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    value = environment.get(name)
    if value is None:
        if default is None:
            raise UsageError(f"{name} is not set")
        return default
    return _whole(name, value)


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{name} is {value!r}, which is no whole number") from None
