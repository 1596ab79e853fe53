"""The loop to compare with: the same model, one step at a time, and the host reads every token before the next step.

It attends over what there is and no more, so it has the advantage where a static cache is mostly empty.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from photon.engine.fast_decoder import Decoded, advance, bans_of
from photon.engine.opening import Opening
from photon.engine.sampling import draw
from photon.engine.static_step import lone_layout
from photon.kernels.paged import KVPool
from photon.models.moondream import Moondream


class PlainLoop:
    def __init__(self, model: Moondream, capacity: int) -> None:
        text = model.config.text
        shape = (text.n_layers, text.kv_heads, 1, capacity, text.head_dim)
        self._model = model
        self._keys, self._values = (torch.zeros(shape, dtype=model.dtype, device=model.device) for _ in range(2))

    @torch.inference_mode()
    def decode(self, opening: Opening) -> Decoded:
        """Raises ``IndexError`` where prompt and answer do not fit."""
        grammar, start, model = opening.script.grammar, opening.positions, self._model
        banned = torch.tensor(bans_of(grammar), dtype=torch.int64, device=model.device)
        begun = time.perf_counter()
        hidden = self._forward(opening.inputs, opening.prefix_len, 0)
        token = self._choose(opening, model.text.logits(hidden[-1:]).float(), start)
        first = time.perf_counter()
        reason, _ = advance(grammar, [token])
        done = 1
        while reason is None:
            at = start + done - 1
            hidden = self._forward(model.embed(torch.tensor([token], device=model.device)), 0, at)
            logits = model.text.logits(hidden).float()
            if banned.numel():
                logits = logits.index_fill(1, banned, float("-inf"))
            token = self._choose(opening, logits, at + 1)
            reason, _ = advance(grammar, [token])
            done += 1
        ended = time.perf_counter()
        return Decoded(list(grammar.tokens), reason, done - 1, 0, done, first - begun, ended - first)

    def _forward(self, inputs: Tensor, prefix_len: int, at: int) -> Tensor:
        """Feed ``inputs`` from position ``at`` on."""
        end = at + len(inputs)
        pool = KVPool(self._keys[:, :, :, :end], self._values[:, :, :, :end])
        positions = torch.arange(at, end, device=inputs.device)
        return self._model.text(inputs, pool, lone_layout(prefix_len, positions))  # type: ignore[no-any-return]

    def _choose(self, opening: Opening, logits: Tensor, length: int) -> int:
        """``length``: positions fed so far."""
        if opening.choice == "greedy":
            return int(logits.argmax(dim=-1).item())
        on = logits.device
        draws = torch.from_numpy(opening.draws).to(on)[None]
        seeds, positions = torch.tensor([[opening.seed], [length - opening.prefix_len]], device=on)
        return int(draw(logits, draws, seeds, positions, cut=opening.choice == "cut").item())
