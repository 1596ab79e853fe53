"""Opens the engine that a manifest names. Importing this imports no torch."""

from __future__ import annotations

import logging
import os

from photon.engine.load import AnyEngine, load_engine
from photon.errors import UsageError
from photon.images.decode import DecodePolicy
from photon.manifest.manifest import Manifest

log = logging.getLogger(__name__)


def check_adapters(manifest: Manifest, engine: AnyEngine) -> None:
    """Raises ``UsageError`` when a task asks for an adapter that ``engine``, handed in by the caller, does not have."""
    loaded = engine.facts.get("adapters")
    for task in manifest.tasks:
        if isinstance(loaded, dict) and task.adapter is not None and task.adapter not in loaded:
            raise UsageError(f"task {task.name}: the engine was loaded without the adapter {task.adapter!r}")


def open_engine(manifest: Manifest, most: int | None = None) -> AnyEngine:
    """Loads the model; ``most``: a batch that is known to fit, where the manifest's is larger or auto. Raises
    ``UsageError`` for a wrong path or files, ``InputError`` for a hub out of reach."""
    model, engine = manifest.model, manifest.engine
    log.info("loading %s", model.path)
    batch = engine.max_batch
    if most is not None:
        batch = most if batch == "auto" else min(batch, most)
    return load_engine(
        os.path.expanduser(model.path),
        revision=model.revision,
        tokenizer=None if model.tokenizer is None else os.path.expanduser(model.tokenizer),
        tokenizer_revision=model.tokenizer_revision,
        device=model.device,
        dtype=model.dtype,
        max_batch=batch,
        depth=engine.depth,
        decision=engine.decision,
        stop_repetition=engine.stops_repetition,
        memory_fraction=engine.memory_fraction,
        stall_timeout=engine.stall_timeout,
        adapters={name: os.path.expanduser(file) for name, file in model.adapters.items()},
        adapter_semantics=manifest.adapter_semantics,
        adapter_slots=engine.adapter_slots,
        graphs=engine.graphs,
        policy=DecodePolicy(**manifest.image.model_dump()),
    )
