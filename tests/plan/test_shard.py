"""Which shard a process does: from --shard, its own variables, Slurm's or torchrun's; and which chunks a shard is."""

from __future__ import annotations

import pytest

from photon.errors import UsageError
from photon.plan.shard import Shard, shard_from

#: What a batch script has: as one task, in an allocation for four.
BATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}


def array(task: int, *, count: int = 4, least: int = 0, most: int | None = None, step: int = 1) -> dict[str, str]:
    """The variables of an array's element; srun adds those of its one task."""
    values = {
        "ID": task,
        "COUNT": count,
        "MIN": least,
        "MAX": least + count - 1 if most is None else most,
        "STEP": step,
    }
    numbers = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}
    return {**numbers, "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}


@pytest.mark.parametrize("chunks", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 100])
def test_shards_share_all_chunks_out(chunks: int, count: int) -> None:
    shares = [Shard(number, count).of(chunks) for number in range(count)]
    assert [chunk for share in shares for chunk in share] == list(range(chunks)), "each once, in order"
    assert {len(share) for share in shares} <= {chunks // count, -(-chunks // count)}, "as evenly as can be"


@pytest.mark.parametrize(
    ("given", "environment", "shard"),
    [
        (None, {}, Shard(0, 1)),
        ("2/8", {}, Shard(2, 8)),
        ("2/8", {"PHOTON_BATCH_SHARD": "2/8"}, Shard(2, 8)),
        ("2/8", array(1), Shard(2, 8)),
        (None, {"PHOTON_BATCH_SHARD": "1/3", **array(2)}, Shard(1, 3)),
        (None, {"PHOTON_BATCH_SHARD": "1", "PHOTON_BATCH_SHARDS": "3"}, Shard(1, 3)),
        (None, array(3), Shard(3, 4)),
        (None, {"PHOTON_BATCH_SHARDS": "64", **array(7, count=2, least=3, most=7, step=4)}, Shard(7, 64)),
        (None, {"PHOTON_BATCH_SHARDS": "64", **array(1, count=2, least=1, most=9)}, Shard(1, 64)),
        (None, {"PHOTON_BATCH_SHARDS": "2500", "PHOTON_BATCH_SHARD_OFFSET": "1001", **array(7)}, Shard(1008, 2500)),
        (None, {"PHOTON_BATCH_SHARDS": "64"}, Shard(0, 1)),
        (None, {**BATCH, "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}, Shard(2, 4)),
        (None, BATCH, Shard(0, 1)),
        (None, {"RANK": "5", "WORLD_SIZE": "8", **BATCH, "SLURM_STEP_NUM_TASKS": "1"}, Shard(5, 8)),
    ],
    ids=[
        "nothing said", "--shard", "both say the same", "--shard before Slurm", "ours before Slurm", "two variables",
        "an array", "two elements again", "elements again", "an offset", "the number alone", "srun",
        "a batch script without srun", "torchrun in a step",
    ],
)  # fmt: skip
def test_what_is_said(given: str | None, environment: dict[str, str], shard: Shard) -> None:
    assert shard_from(given, environment) == shard


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        ("8/8", {}, "there is no shard 8 of 8; shards count from 0 to N - 1"),
        ("0/0", {}, "there is no shard 0 of 0"),
        ("3", {}, "a shard is written i/N, for example 0/8 for the first of eight, not '3'"),
        ("1/8", {"PHOTON_BATCH_SHARD": "2/8"}, "--shard says 1/8 and PHOTON_BATCH_SHARD 2/8; drop one"),
        (None, {"PHOTON_BATCH_SHARD": "2"}, "PHOTON_BATCH_SHARD is set without PHOTON_BATCH_SHARDS"),
        (None, {"PHOTON_BATCH_SHARD": "two", "PHOTON_BATCH_SHARDS": "3"}, "is 'two', which is no whole number"),
        (None, array(3, count=2, least=3, most=7, step=4), "array of 2 elements from 3 to 7 does not say how many"),
        (None, array(3, count=3, least=3), "array of 3 elements from 3 to 5 does not say how many shards"),
        (None, array(0, count=3, most=9), "array of 3 elements from 0 to 9 does not say how many shards"),
        (None, {"PHOTON_BATCH_SHARD_OFFSET": "1001", **array(0)}, "OFFSET is set without PHOTON_BATCH_SHARDS"),
        (None, {"PHOTON_BATCH_SHARDS": "3", **array(3)}, "there is no shard 3 of 3"),
    ],
)
def test_what_cannot_be_meant(given: str | None, environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shard_from(given, environment)
