"""From an arrival to a sequence, with its worst case worked out.

Nothing is evicted in mid-flight: a sequence enters with all the pages that its prompt and its longest answer can take.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from photon.engine.intake import Arrival
from photon.engine.sequence import Sequence
from photon.errors import RowError


@dataclass(frozen=True, slots=True)
class Admission:
    """``prefix_len``: positions of an image prefix; ``max_context``: positions that the model knows; ``adapters``: the
    names of those that are loaded."""

    prefix_len: int
    max_context: int
    page_size: int
    adapters: Collection[str] = ()

    def sequence(self, arrival: Arrival) -> Sequence:
        """The arrival's sequence, without its prefix. Raises ``RowError`` for what failed on the way here,
        ADAPTER_UNKNOWN for an adapter that is not loaded, and PROMPT_TOO_LONG when prompt and image leave no room for
        an answer.

        An answer may take what room there is: the first sample needs none, each further one feeds a token.
        """
        prepared = arrival.prepared
        if prepared is not None and prepared.failure is not None:
            raise RowError(prepared.failure.code, prepared.failure.message, prepared.failure.sample)
        if arrival.failure is not None:
            raise RowError(arrival.failure.code, arrival.failure.message)
        adapter = arrival.request.settings.adapter
        if adapter is not None and adapter not in self.adapters:
            raise RowError("ADAPTER_UNKNOWN", f"no adapter {adapter!r} is loaded; {self._known(adapter)}")
        prompt = len(arrival.script.prompt.ids)
        room = self.room(prompt, pictured=prepared is not None)
        samples = min(arrival.script.grammar.max_samples, room)
        return Sequence(
            request=arrival.request,
            script=arrival.script,
            prefix=None,
            submitted=arrival.submitted,
            prepared=prepared.when if prepared is not None else arrival.submitted,
            max_samples=samples,
            pages_needed=-(-(prompt + samples - 1) // self.page_size),
        )

    def room(self, prompt: int, *, pictured: bool) -> int:
        """Samples that a prompt of so many tokens leaves room for. Raises ``RowError``, PROMPT_TOO_LONG, for none."""
        start = prompt + (self.prefix_len if pictured else 0)
        room = self.max_context - start + 1
        if room < 1:
            raise RowError(
                "PROMPT_TOO_LONG",
                f"the prompt has {prompt} tokens; with the image that makes {start} positions, and the model knows "
                f"{self.max_context}",
            )
        return room

    def _known(self, name: str) -> str:
        near = get_close_matches(name, self.adapters, 1)
        return f"did you mean {near[0]!r}?" if near else f"those loaded: {', '.join(self.adapters) or 'none'}"
