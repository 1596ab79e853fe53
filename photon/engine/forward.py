"""The device's part of each kind of step: closures over slots, pages and the model, ready to be launched.

Everything a closure needs from the host is staged when it is made; it decides nothing when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import numpy as np
import torch

from photon.engine.layout import decode_layout, prefill_layout
from photon.engine.rows import RowTable
from photon.engine.sampling import SamplePlan, Sampler
from photon.engine.sequence import Picture, Sequence
from photon.engine.slots import Slot
from photon.kernels.paged import KVPool
from photon.models.moondream import COORDINATE, SIZE, TOKEN, Moondream

Op = Callable[[], None]


class Forward:
    def __init__(
        self, model: Moondream, pool: KVPool, table: RowTable, sampler: Sampler, *, bos_id: int, embeddings: int
    ) -> None:
        self._model, self._pool, self._table, self._sampler = model, pool, table, sampler
        self._bos_id = bos_id
        self._prefix_len = model.config.prefix_len
        self._page_size = pool.page_size
        # Image tokens from a vision step to the prefill that reads them; see Picture.embedding.
        self._embeddings = torch.zeros(
            embeddings, self._prefix_len - 1, model.config.text.dim, dtype=model.dtype, device=model.device
        )

    def vision(self, pictures: Seq[Picture]) -> Op:
        """Encode the pictures' crops in one batch into their embedding entries."""
        crops = [picture.prepared.content for picture in pictures]
        entries = [picture.embedding for picture in pictures]

        def op() -> None:
            pixels = torch.from_numpy(np.concatenate([c.pixels for c in crops])).to(self._model.device)
            tokens = self._model.vision(pixels, [c.tiling for c in crops])
            for entry, image_tokens in zip(entries, tokens, strict=True):
                self._embeddings[entry].copy_(image_tokens)

        return op

    def prefill(self, slot: Slot, pictures: Seq[Picture], entries: Seq[int], sequences: Seq[Sequence]) -> Op:
        """Prefixes of ``pictures`` and prompts of ``sequences`` in one packed forward.

        ``entries``: the pictures' embedding entries. Leaves each prompt's last hidden state in the slot.
        """
        arena = slot.inputs
        lengths = np.array([len(s.script.prompt.ids) for s in sequences], np.int64)
        rows = np.array([s.row for s in sequences], np.int64)
        prefixes = [picture.prefix for picture in pictures if picture.prefix is not None]
        layout = prefill_layout(
            arena,
            self._table,
            prefixes,
            rows,
            lengths,
            prefix_len=self._prefix_len,
            page_size=self._page_size,
        )
        width = int(lengths.max())
        ids = np.zeros((len(sequences), width), np.int64)
        kinds, values = None, None
        for i, sequence in enumerate(sequences):
            ids[i, : lengths[i]] = sequence.script.prompt.ids
        if any(s.script.prompt.coordinates for s in sequences):
            kind_array, value_array = _region_inputs(sequences, width)
            kinds, values = arena.place(kind_array.ravel()), slot.places.place(value_array.reshape(-1, 2))
        prompt = arena.place(ids.ravel())
        last = arena.place(layout.prefix_tokens + np.arange(len(sequences)) * width + lengths - 1)

        def op() -> None:
            x = self._model.embed(prompt, kinds, values)
            if entries:
                x = torch.cat((self._model.prefix(self._bos_id, self._embeddings[list(entries)]), x))
            hidden = self._model.text(x, self._pool, layout)
            slot.hidden[: len(sequences)].copy_(hidden[last])

        return op

    def decode(self, slot: Slot, sequences: Seq[Sequence]) -> Op:
        """One token for each sequence, read from where the step before left it."""
        rows = np.array([s.row for s in sequences], np.int64)
        layout = decode_layout(slot.inputs, self._table, rows, prefix_len=self._prefix_len, page_size=self._page_size)
        at = slot.inputs.place(rows)
        table = self._table

        def op() -> None:
            x = self._model.embed(table.next_ids[at], table.next_kinds[at], table.next_values[at])
            slot.hidden[: len(sequences)].copy_(self._model.text(x, self._pool, layout))

        return op

    def sample(self, slot: Slot, plan: SamplePlan) -> Op:
        """Sample, leave the rows' next inputs on the device and the step's outcome in the slot's landing."""

        def op() -> None:
            samples = self._sampler(slot.hidden[: plan.count], plan)
            self._table.next_ids[plan.table_rows] = samples.tokens
            self._table.next_kinds[plan.table_rows] = samples.kinds
            self._table.next_values[plan.table_rows] = samples.values
            slot.landing[: plan.count].copy_(samples.landing)

        return op

    def read_back(self, slot: Slot, count: int) -> Op:
        def op() -> None:
            slot.landed[:count].copy_(slot.landing[:count], non_blocking=True)

        return op


def _region_inputs(
    sequences: Seq[Sequence], width: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.int64]], np.ndarray[tuple[int, int, int], np.dtype[np.float32]]]:
    """Kinds [rows, width] and values [rows, width, 2] of prompts that hold coordinates and sizes."""
    kinds = np.full((len(sequences), width), TOKEN, np.int64)
    values = np.zeros((len(sequences), width, 2), np.float32)
    for i, sequence in enumerate(sequences):
        for at, value in sequence.script.prompt.coordinates.items():
            kinds[i, at], values[i, at, 0] = COORDINATE, value
        for at, size in sequence.script.prompt.sizes.items():
            kinds[i, at], values[i, at] = SIZE, size
    return kinds, values
