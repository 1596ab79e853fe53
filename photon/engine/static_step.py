"""One sequence's decode step with nothing left to the host: every step is the same operators on the same memory.

Token, position, keys and values, and the tokens so far are buffers of the device that a step updates in place, so that
it can be queued many times over, captured or compiled. When a text ends is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from photon.engine.opening import Choice, Opening
from photon.engine.sampling import draw
from photon.kernels.paged import KVPool, StepLayout
from photon.models.moondream import Moondream


class StaticStep(nn.Module):
    """``model`` with the state of one sequence of up to ``capacity`` positions; ``bans``: ids that no step chooses.

    The cache is one page, addressed by absolute position. A token sees what stands at or before its own position, which
    hides what is not written yet. ``position``: where ``token`` is fed next. ``output`` [capacity]: what was chosen
    after each position. ``seed`` [1], ``draws`` [1, 3] and ``base`` [1], the prefix's length, are the sampling's.
    """

    token: Tensor
    position: Tensor
    output: Tensor
    seed: Tensor
    draws: Tensor
    base: Tensor
    banned: Tensor
    keys: Tensor
    values: Tensor

    def __init__(self, model: Moondream, capacity: int, bans: Sequence[int]) -> None:
        super().__init__()
        self.model, self.capacity, on = model, capacity, model.device
        text = model.config.text
        cache = (text.n_layers, text.kv_heads, 1, capacity, text.head_dim)
        for name in ("token", "position", "seed", "base"):
            self.register_buffer(name, torch.zeros(1, dtype=torch.int64, device=on))
        self.register_buffer("output", torch.zeros(capacity, dtype=torch.int64, device=on))
        self.register_buffer("draws", torch.ones(1, 3, device=on))
        self.register_buffer("banned", torch.tensor(sorted(set(bans)), dtype=torch.int64, device=on))
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(cache, dtype=model.dtype, device=on))

    def forward(self, choice: Choice) -> None:
        """Feed the token, choose the next."""
        layout = lone_layout(0, self.position)
        hidden = self.model.text(self.model.embed(self.token), KVPool(self.keys, self.values), layout)
        logits = self.model.text.logits(hidden).float()
        if self.banned.numel():
            logits = logits.index_fill(1, self.banned, float("-inf"))
        self._choose(logits, choice)

    def begin(self, opening: Opening) -> None:
        """Forget the sequence before, take in ``opening`` and choose the first token, which no ban applies to."""
        count = opening.positions
        for cache in (self.keys, self.values):  # 0 x NaN is NaN: a sequence that broke must not break the next
            cache.zero_()
        self.position.fill_(count - 1)
        self.base.fill_(opening.prefix_len)
        self.seed.fill_(opening.seed)
        self.draws.copy_(torch.from_numpy(opening.draws))
        layout = lone_layout(opening.prefix_len, torch.arange(count, device=self.position.device))
        hidden = self.model.text(opening.inputs, KVPool(self.keys, self.values), layout)
        self._choose(self.model.text.logits(hidden[-1:]).float(), opening.choice)

    def read(self, first: int, count: int) -> list[int]:
        """``count`` tokens from the one chosen after position ``first`` on. The host waits for them."""
        tokens: list[int] = self.output[first : first + count].tolist()
        return tokens

    def _choose(self, logits: Tensor, choice: Choice) -> None:
        """The noise depends on how many tokens of the sequence's own have been fed, as in the batch engine."""
        if choice == "greedy":
            chosen = logits.argmax(dim=-1)
        else:
            chosen = draw(logits, self.draws, self.seed, self.position + 1 - self.base, cut=choice == "cut")
        self.output.index_copy_(0, self.position, chosen)
        self.token.copy_(chosen)
        self.position.add_(1)


def lone_layout(prefix_len: int, positions: Tensor) -> StepLayout:
    """A lone sequence at ``positions``, of which the first ``prefix_len`` are a picture's prefix.

    Its own suffix starts at position 0, so that place, position and what may be seen are one number.
    """
    nothing = positions.new_empty(0, 0)
    return StepLayout(
        prefixes=1 if prefix_len else 0,
        prefix_len=prefix_len,
        positions=positions,
        targets=positions,
        offsets=positions[None, prefix_len:],
        suffix_pages=None,  # a table of pages would copy the cache each step: a quarter of one at 1024 tiny positions
        prefix_pages=nothing,
        members=nothing,
        seats=nothing,
    )
