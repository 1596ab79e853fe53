"""How many rows a chunk has where the manifest leaves it open: about a minute of work, by a sample."""

from __future__ import annotations

import logging
import time
from typing import cast

from photon.data.row import Source
from photon.engine.load import AnyEngine
from photon.job.questions import Questions, RequestId
from photon.manifest.manifest import Manifest

log = logging.getLogger(__name__)

#: For an engine whose speed says nothing, and where nothing could be measured.
CHUNK_ROWS = 1000
_SECONDS, _SAMPLE = 60.0, 8
_LEAST, _MOST = 16, 10_000


def measured_chunk_rows(manifest: Manifest, source: Source, engine: AnyEngine) -> int:
    """``output.chunk_rows`` or, for auto, what the engine does in a minute, by its speed on the first rows."""
    wanted = manifest.output.chunk_rows
    if wanted != "auto":
        return wanted
    rate = measured_rate(manifest, source, engine)
    return CHUNK_ROWS if rate is None else chunk_rows_at(rate)


def measured_rate(manifest: Manifest, source: Source, engine: AnyEngine) -> float | None:
    """Rows a second, by the first few; None where nothing can be measured."""
    if engine.statistics is None:  # it has no steps, so no model
        return None
    questions = Questions(manifest.tasks, manifest.run.seed)
    rows = list(source.rows(_SAMPLE))
    requests = [request for row in rows for request in questions.about(row, row.index).requests]
    if not requests:
        return None
    start = time.monotonic()
    answered = {cast(RequestId, result.id)[0] for result in engine.run(requests) if result.error is None}
    if not answered:  # broken pictures say nothing of the speed
        return None
    seconds = max(time.monotonic() - start, 1e-6)
    log.info("%d rows took %.1f s", len(answered), seconds)
    return len(answered) / seconds


def chunk_rows_at(rate: float) -> int:
    """Rows of a minute at ``rate`` rows a second, within reason."""
    chunk = int(min(max(_SECONDS * rate, _LEAST), _MOST))
    log.info("chunks of %d rows", chunk)
    return chunk
