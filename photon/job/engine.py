"""Opens the engine that a manifest names. Importing this imports no torch."""

from __future__ import annotations

import logging
import os

from photon.engine.load import AnyEngine, load_engine
from photon.images.decode import DecodePolicy
from photon.job.manifest import Manifest

log = logging.getLogger(__name__)


def open_engine(manifest: Manifest) -> AnyEngine:
    """Loads the model. Raises ``UsageError`` for a wrong path or files, ``InputError`` for a hub out of reach."""
    model, engine = manifest.model, manifest.engine
    log.info("loading %s", model.path)
    return load_engine(
        os.path.expanduser(model.path),
        revision=model.revision,
        tokenizer=None if model.tokenizer is None else os.path.expanduser(model.tokenizer),
        tokenizer_revision=model.tokenizer_revision,
        device=model.device,
        dtype=model.dtype,
        max_batch=engine.max_batch,
        depth=engine.depth,
        decision=engine.decision,
        stop_repetition=engine.stops_repetition,
        memory_fraction=engine.memory_fraction,
        stall_timeout=engine.stall_timeout,
        policy=DecodePolicy(**manifest.image.model_dump()),
    )
