"""Rules of a manifest that span several keys. They look at plain values, half-wrong ones too, so that one reading
of a manifest tells everything that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from photon.manifest.problems import KeyPath, nearest

SOURCES = ("parquet", "arrow", "folder", "webdataset", "hub")
_EXAMPLES = {
    "parquet": "[data/*.parquet]",
    "arrow": "[data/*.arrow]",
    "folder": "photos",
    "webdataset": "[shards/*.tar]",
    "hub": "imagefolder",
}
HUB_ONLY = ("split", "revision", "config", "options")
#: Columns of the result row that are neither kept nor a task's.
RESULT_COLUMNS = ("row_id", "status", "error_code", "error_message", "source", "image", "job_id")

Broken = Iterator[tuple[KeyPath, str]]


def broken_rules(data: Mapping[str, Any]) -> Broken:
    """(key path, what is wrong and what to do) of every rule that ``data``, a manifest as plain values, breaks."""
    source = data.get("input")
    if isinstance(source, Mapping):
        yield from _one_source(source)
    names = list(_task_texts(data.get("tasks"), "name"))
    yield from _distinct_names(names)
    yield from _known_adapters(list(_task_texts(data.get("tasks"), "adapter")), data.get("model"))
    if isinstance(source, Mapping):
        yield from _kept_names(source.get("keep"), [name for _, name in names])


def _one_source(source: Mapping[str, Any]) -> Broken:
    given = [name for name in SOURCES if source.get(name)]
    if len(given) > 1:
        yield ("input", given[1]), f"{' and '.join(given)} are given; keep one of them"
    elif not given and not any(name in source for name in SOURCES):
        yield ("input",), f"names no data; add one of {', '.join(SOURCES)}, for example parquet: [data/*.parquet]"
    elif not given:
        named = next(name for name in SOURCES if name in source)
        yield ("input", named), f"is empty; name the data, for example {_EXAMPLES[named]}"
    if given and "hub" not in given:
        for name in HUB_ONLY:
            if source.get(name):
                yield ("input", name), f"goes with hub, not with {given[0]}; leave it out"


def _task_texts(tasks: Any, key: str) -> Iterator[tuple[KeyPath, str]]:
    """What each task has at ``key``, where that is text."""
    listed = tasks if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
    for i, task in enumerate(listed):
        if isinstance(task, Mapping) and isinstance(task.get(key), str):
            yield ("tasks", i, key), task[key]


def _known_adapters(named: list[tuple[KeyPath, str]], model: Any) -> Broken:
    adapters = model.get("adapters") if isinstance(model, Mapping) else None
    known = [name for name in adapters if isinstance(name, str)] if isinstance(adapters, Mapping) else []
    for path, name in named:
        if name not in known:
            remedy = nearest(name, known) if known else "there are none; write {name: file} there, or leave this out"
            yield path, f"{name!r} is none of model.adapters; {remedy}"


def _distinct_names(names: list[tuple[KeyPath, str]]) -> Broken:
    seen: set[str] = set()
    for path, name in names:
        if name in RESULT_COLUMNS:
            yield path, f"{name} is a column of every result; choose another name"
        elif name in seen:
            yield path, f"{name} names an earlier task too; choose another name"
        seen.add(name)


def _kept_names(keep: Any, tasks: list[str]) -> Broken:
    listed = list(keep) if isinstance(keep, (list, tuple)) else [keep]
    for i, name in enumerate(listed):
        if not isinstance(name, str):
            continue
        if name in RESULT_COLUMNS:
            yield ("input", "keep", i), f"{name} is a column of every result; rename it in the data or leave it out"
        elif name in tasks:
            yield ("input", "keep", i), f"{name} names a task too; give the task another name"
        elif name in listed[:i]:
            yield ("input", "keep", i), f"{name} is listed twice; keep one of them"
