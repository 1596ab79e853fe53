"""How much memory this process may still take, on Linux: what is available, within the control group's limit."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Free memory and what the kernel would give up for it (page cache), capped by every limit of our control group."""
    return min([_available(), *_group_rooms()])


def _available() -> int:
    try:
        fields = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_rooms() -> list[int]:
    """What the limits of our control group (version 2) and of those above it leave."""
    try:
        own = next(line[3:] for line in _OWN_GROUP.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return []
    rooms = []
    group = _GROUPS / own.strip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(_GROUPS):
            break
        try:
            limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
            if limit != "max":
                rooms.append(max(0, int(limit) - int(used)))
        except (OSError, ValueError):
            continue
    return rooms
