"""From a manifest to the plan that a run works by: read from disk, extended where the input grew, or made."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from photon.data.row import Source
from photon.errors import UsageError
from photon.job.sources import open_planned, open_source, reader_of, reading_of
from photon.manifest.manifest import Manifest
from photon.plan.growth import Growth, growth_of
from photon.plan.plan import Plan, spans_of
from photon.plan.plan_file import create_plan, extend_plan, read_plan

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Planned:
    """``plan`` with what has come to the input; ``growth`` is that, not yet on disk. ``is_new``: nothing is. For a new
    plan, ``chunk_rows`` is still to be settled where the manifest says auto."""

    plan: Plan
    source: Source
    growth: Growth
    is_new: bool

    def freeze(self, root: Path, manifest: Manifest, chunk_rows: int) -> None:
        """Puts the plan, or what came to it, on disk. Where another process was quicker, its plan counts. Raises
        ``OutputError``."""
        if self.is_new:
            self.plan = replace(self.plan, chunk_rows=chunk_rows)
            created = create_plan(root, self.plan)
        elif self.growth.spans:
            before = replace(self.plan, generations=self.plan.generations - 1)
            created = extend_plan(root, before, self.growth.units, self.growth.spans)
        else:
            return
        if not created:
            found = read_plan(root)
            assert found is not None
            self.plan = found
            self.source = open_planned(manifest, found)


def open_plan(root: Path, manifest: Manifest, source: Source | None) -> Planned:
    """The plan in ``root``, held against the input as it is now, which is ``source``; without one, as it is.

    Raises ``UsageError`` where the input does not fit the plan, ``InputError`` where it cannot be read.
    """
    plan = read_plan(root)
    if plan is None:
        return new_plan(manifest, source or open_source(manifest))
    _check_reading(plan, manifest)
    if source is None:
        return Planned(plan, open_planned(manifest, plan), Growth(), False)
    growth = growth_of(plan, source.units({unit.name: unit for unit in plan.units}), manifest.input.limit)
    if growth.spans:
        log.info("the input has grown by %s rows since it was planned", f"{growth.rows:,}")
        plan = growth.applied(plan)
    if growth.gone:
        log.info("%s files of the plan are not there any more", f"{len(growth.gone):,}")
    return Planned(plan, open_planned(manifest, plan), growth, False)


def new_plan(manifest: Manifest, source: Source) -> Planned:
    """A plan of the input as it is now. Raises ``InputError`` where it cannot be read."""
    reader, units = reader_of(manifest, source), source.units()
    spans = spans_of(units, reader, manifest.input.limit)
    plan = Plan(secrets.token_hex(8), 1, reader, reading_of(manifest), units, spans)
    return Planned(plan, source, Growth(), True)


def _check_reading(plan: Plan, manifest: Manifest) -> None:
    now = reading_of(manifest)
    for key, before in plan.reading.items():
        if before != now.get(key):
            raise UsageError(
                f"the plan was made with input.{key} {before}, and the manifest says {now.get(key)}; set it back, "
                "choose another output.dir, or start over with --fresh"
            )
