"""From a manifest to the plan that a run works by: read from disk, extended where the input grew, or made."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from photon.data.row import Source
from photon.errors import UsageError
from photon.job.mended import Mended
from photon.job.sources import FIXED, open_planned, open_source, reader_of, reading_of
from photon.manifest.manifest import Manifest
from photon.plan.growth import Growth, growth_of
from photon.plan.plan import Plan, spans_of
from photon.plan.plan_file import create_plan, extend_plan, read_plan

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Planned:
    """``plan`` with what has come to the input; ``growth`` is that, not yet on disk. ``is_new``: nothing is. For a new
    plan, ``chunk_rows`` is still to be settled where the manifest says auto. ``is_reworded``: the manifest names the
    same rows in other words, which are not on disk."""

    plan: Plan
    source: Source
    growth: Growth
    is_new: bool
    is_reworded: bool = False

    def freeze(self, root: Path, manifest: Manifest, chunk_rows: int) -> None:
        """Puts the plan, or what came to it, on disk. Where another process was quicker, its plan counts. Raises
        ``OutputError``."""
        if self.is_new:
            self.plan = replace(self.plan, chunk_rows=chunk_rows)
            created = create_plan(root, self.plan)
        elif self.growth or self.is_reworded:
            before = replace(self.plan, generations=self.plan.generations - 1)
            created = extend_plan(root, before, self.growth.changes, self.growth.spans)
        else:
            return
        if not created:
            found = read_plan(root)
            assert found is not None
            _check_reading(found, manifest, tuple(reading_of(manifest)))
            self.plan = found
            self.source = open_planned(manifest, found, as_planned=True)


def open_plan(root: Path, manifest: Manifest, source: Source | None, retry: Collection[str] | None = None) -> Planned:
    """The plan in ``root``, held against the input as it is now, which is ``source``; without one, as it is. ``retry``:
    the codes of failed rows that are asked again, all where it is empty, none where it is None.

    Raises ``UsageError`` where the input does not fit the plan, ``InputError`` where it cannot be read.
    """
    plan = read_plan(root)
    if plan is None:
        return new_plan(manifest, source or open_source(manifest))
    now = reading_of(manifest)
    # Without a source, and with one of which only reading tells what it holds, the words are all there is to compare.
    _check_reading(plan, manifest, tuple(now) if source is None or plan.is_endless else FIXED)
    if source is None:
        return Planned(plan, open_planned(manifest, plan, as_planned=True), Growth(), False)
    units = source.units({unit.name: unit for unit in plan.units})
    growth = growth_of(plan, units, manifest.input.limit, Mended(root, plan, retry).may_be_new)
    if growth.spans:
        log.info("%s rows come to those that were planned", f"{growth.rows:,}")
    if growth.replaced:
        log.info("%s planned pictures were replaced since, and are taken as they are", f"{len(growth.replaced):,}")
    is_reworded = plan.reading != now
    if growth or is_reworded:
        plan = replace(growth.applied(plan), reading=now)
    if growth.gone:
        log.info("%s files of the plan are not there any more", f"{len(growth.gone):,}")
    return Planned(plan, open_planned(manifest, plan, as_planned=True), growth, False, is_reworded)


def new_plan(manifest: Manifest, source: Source) -> Planned:
    """A plan of the input as it is now. Raises ``InputError`` where it cannot be read."""
    reader, units = reader_of(manifest, source), source.units()
    spans = spans_of(units, reader, manifest.input.limit)
    plan = Plan(secrets.token_hex(8), 1, reader, reading_of(manifest), units, spans)
    return Planned(plan, source, Growth(), True)


def _check_reading(plan: Plan, manifest: Manifest, keys: Sequence[str]) -> None:
    now = reading_of(manifest)
    for key in keys:
        before = plan.reading.get(key)
        if before == now[key] or (key == "limit" and now[key] is None and not plan.is_endless):
            continue  # no limit is all of the plan
        who = "the manifest, or --limit," if key == "limit" else "the manifest"
        to_plan = "" if key in FIXED or plan.is_endless else "run photon-batch plan on this manifest first, "
        raise UsageError(
            f"the plan was made with input.{key} {_told(before)}, and {who} says {_told(now[key])}; set it back, "
            f"{to_plan}choose another output.dir, or start over with --fresh"
        )


def _told(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(value) or "null"
    return "null" if value is None else value
