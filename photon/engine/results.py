"""Results from the engine's own state."""

from __future__ import annotations

from collections.abc import Hashable

from photon.core import Failure, FinishReason, ImageInfo, Result
from photon.engine.sequence import Sequence
from photon.errors import RowError


def answered(sequence: Sequence, reason: FinishReason) -> Result:
    """What a finalized sequence's grammar has gathered."""
    tokens = sequence.script.grammar.tokens
    return Result(
        id=sequence.request.id,
        finish_reason=reason,
        token_ids=tokens,
        n_tokens=len(tokens),
        image=sequence.info,
        timings=sequence.timings(),
        **sequence.script.parse(),
    )


def failed(id: Hashable, error: RowError, image: ImageInfo | None = None) -> Result:
    return Result(id=id, error=Failure(error.code, str(error), error.sample), image=image)
