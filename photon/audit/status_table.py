"""A job's status as a person reads it: a few lines and a table that fits the terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from photon.audit.status import JobStatus, ShardStatus
from photon.job.progress import clock
from photon.job.summary import fitted

#: Columns of the table, and the order in which they are left out where the terminal is too narrow.
_COLUMNS = ("shard", "state", "rows", "done", "rows/s", "left", "failed", "seen", "process")
_DROPPED = ("process", "seen", "rows/s", "failed", "done")
_RIGHT = {"rows", "done", "rows/s", "left", "failed", "seen"}
_GAP = "  "


def status_text(status: JobStatus, columns: int | None = None, lines: int | None = None) -> str:
    """``columns`` and ``lines`` are the terminal's, None where there is none. Where not all shards have room, those
    that are finished or not begun are counted alone."""
    head = [fitted(line, columns) for line in _head(status)]
    tail = [fitted(line, columns) for line in _tail(status)]
    if not status.shards:
        return "\n".join([*head, *tail])
    room = None if lines is None else lines - sum(line.count("\n") + 1 for line in (*head, *tail)) - 3
    shown, rest = _chosen(status.shards, room)
    table = _table([_COLUMNS, *(_cells(shard, status.now) for shard in shown)], columns)
    return "\n".join([*head, *table, *([fitted(rest, columns)] if rest else []), *tail])


def _head(status: JobStatus) -> list[str]:
    planned = "an unknown number of" if status.planned is None else f"{status.planned:,}"
    share = f" ({status.rows / status.planned:.1%})" if status.planned else ""
    chunks = "" if status.chunks_planned is None else f" of {status.chunks_planned:,}"
    lines = [
        f"{status.output}: {status.state}, {status.rows:,} of {planned} rows on disk{share}, "
        f"{status.chunks:,}{chunks} chunks, {status.bytes / 1e6:,.1f} MB"
    ]
    if status.rate is not None:
        left = "" if status.left is None else f", {clock(status.left)} left"
        lines.append(f"{status.rate:,.1f} rows/s{left}")
    return lines


def _tail(status: JobStatus) -> list[str]:
    lines = [f"{status.ok:,} ok, {status.failed:,} failed, {status.found:,} objects and points found"]
    width = max(map(len, status.codes), default=0)
    ordered = sorted(status.codes.items(), key=lambda code: (-code[1], code[0]))
    lines += [f"  {code:<{width}}  {count:>6,}" for code, count in ordered]
    if status.quarantined:
        lines.append(f"{status.quarantined:,} rows brought the engine down; run --retry-failed asks them again")
    batches = sorted({shard.max_batch for shard in status.shards if shard.max_batch is not None})
    if batches:
        lines.append(f"memory ran out: shards go on with batches of {', '.join(map(str, batches))}")
    if status.crashes:
        lines.append(f"{status.crashes:,} crash reports in {status.output}/crash, the last one: {status.crash}")
    if gone := [shard.shard for shard in status.shards if shard.state == "gone"]:
        lines.append(f"gone without a word: {', '.join(gone)}; the same run command goes on")
    return lines


def _chosen(shards: Sequence[ShardStatus], room: int | None) -> tuple[Sequence[ShardStatus], str]:
    """The shards to show, and what is said of the others."""
    if room is None or len(shards) <= room:
        return shards, ""
    quiet = ("finished", "open")
    ranked = sorted(range(len(shards)), key=lambda n: (shards[n].state in quiet, n))
    kept = set(ranked[: max(room - 1, 1)])
    left_out = Counter(shard.state for n, shard in enumerate(shards) if n not in kept)
    told = ", ".join(f"{count:,} {state}" for state, count in left_out.items())
    return [shard for n, shard in enumerate(shards) if n in kept], f"and {told}"


def _cells(shard: ShardStatus, now: float) -> tuple[str, ...]:
    planned = "?" if shard.planned is None else f"{shard.planned:,}"
    return (
        shard.shard,
        shard.state,
        f"{shard.rows:,} of {planned}",
        f"{shard.rows / shard.planned:.0%}" if shard.planned else "",
        "" if shard.rate is None else f"{shard.rate:,.1f}",
        "" if shard.left is None else clock(shard.left),
        f"{shard.failed:,}",
        "" if shard.updated is None else _ago(now, shard.updated),
        shard.process or "",
    )


def _ago(now: float, then: float) -> str:
    seconds = max(0, int(now - then))
    if seconds < 24 * 3600:
        return f"{clock(seconds)} ago"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(then))


def _table(rows: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """The columns that fit, side by side."""
    kept = list(range(len(_COLUMNS)))
    widths = [max(len(row[n]) for row in rows) for n in kept]
    for name in _DROPPED:
        if columns is None or sum(widths[n] for n in kept) + len(_GAP) * (len(kept) - 1) <= columns:
            break
        kept.remove(_COLUMNS.index(name))
    made = []
    for row in rows:
        cells = [row[n].rjust(widths[n]) if _COLUMNS[n] in _RIGHT else row[n].ljust(widths[n]) for n in kept]
        line = _GAP.join(cells).rstrip()
        made.append(line if columns is None else line[:columns])
    return made
