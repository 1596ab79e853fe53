"""A job's plan put on disk before any run, as ``run`` would do it, and an estimate of what it comes to.

No model is loaded, unless its speed is to be measured.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

from photon.audit.estimate import Estimate, Known, Rate, estimate, given_rate
from photon.audit.headers import look_at_headers
from photon.audit.spread import spread_rows
from photon.engine.load import NULL
from photon.images.decode import DecodePolicy
from photon.job.engine import open_engine
from photon.job.folder import OutputFolder
from photon.job.measure import CHUNK_ROWS, chunk_rows_at, measured_rate
from photon.job.planning import Planned, open_plan
from photon.job.sources import open_source
from photon.manifest.manifest import Manifest
from photon.models.config import VisionConfig
from photon.models.load import vision_of
from photon.plan.owner import owners

#: Rows whose headers are looked at; fewer where each has to be fetched.
SAMPLE, _FETCHED = 288, 24


def prepare(
    manifest: Manifest, *, measure: bool = False, rate: float | None = None, price_per_hour: float | None = None
) -> Estimate:
    """Freezes the plan of ``manifest``, or adds to it what has come to the input, and tells what it comes to.

    While processes are at work on the job, nothing is added: their shards are shares of the plan as it is. ``measure``
    loads the model and tries it on a few rows. ``rate``: images a second that are known already. Raises ``UsageError``,
    ``InputError`` and ``OutputError`` as ``run`` does.
    """
    known = None if rate is None else given_rate(rate)
    folder = OutputFolder(manifest.output.dir)
    source = open_source(manifest)
    folder.check(fresh=False)
    planned = open_plan(folder.root, manifest, source)
    measured = _measured(manifest, planned) if measure else None
    now = time.time()
    is_frozen = planned.is_new or all(owner.is_stale(now) for owner in owners(folder.root))
    if is_frozen:
        folder.claim(fresh=False)
        planned.freeze(folder.root, manifest, _chunk_rows(manifest, measured))
    vision, tiled_by = _vision(manifest)
    count = _FETCHED if manifest.input.urls.fetch else SAMPLE
    rows = spread_rows(planned.source, planned.plan, count, planned.growth.gone)
    headers = look_at_headers(rows, DecodePolicy(**manifest.image.model_dump()), vision)
    origin = Rate(measured, "(measured on the first rows)") if measured else None
    beside = Known(planned.growth, planned.is_new, is_frozen, headers, tiled_by, known or origin, price_per_hour)
    return estimate(folder.root, manifest, planned.plan, beside)


def _measured(manifest: Manifest, planned: Planned) -> float | None:
    with closing(open_engine(manifest)) as engine:
        return measured_rate(manifest, planned.source, engine)


def _chunk_rows(manifest: Manifest, rate: float | None) -> int:
    wanted = manifest.output.chunk_rows
    if wanted != "auto":
        return wanted
    return CHUNK_ROWS if rate is None else chunk_rows_at(rate)


def _vision(manifest: Manifest) -> tuple[VisionConfig, str]:
    """How the model cuts pictures, and whose way that is."""
    path = manifest.model.path
    found = None if path == NULL else vision_of(os.path.expanduser(path))
    return (VisionConfig(), "Moondream 2") if found is None else (found, Path(path).name if "://" not in path else path)
