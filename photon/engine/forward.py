"""The device's part of each kind of step: operations over slots, pages and the model, ready to be launched."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from photon.device.device import Operation, Pages
from photon.engine.adapters import AdapterBank
from photon.engine.layout import decode_layout, prefill_layout
from photon.engine.rows import Ints, RowTable
from photon.engine.sampling import Sampler, Samples, plan_samples
from photon.engine.sequence import Picture, Prefix, Sequence
from photon.engine.slots import Slot
from photon.engine.work import Work
from photon.kernels.paged import KVPool, Layout
from photon.models.lora import Deltas
from photon.models.moondream import COORDINATE, SIZE, TOKEN, Moondream
from photon.models.tiling import crop_count


class Forward:
    def __init__(
        self,
        model: Moondream,
        pool: KVPool,
        table: RowTable,
        sampler: Sampler,
        *,
        bos_id: int,
        embeddings: Tensor,
        bank: AdapterBank | None = None,
    ) -> None:
        """``embeddings`` [entries, grid x grid, dim]: image tokens from a vision step to the prefill that reads them;
        see ``Picture.embedding``. ``bank`` is None where no adapters are loaded."""
        self._model, self._pool, self._table, self._sampler = model, pool, table, sampler
        self._bos_id, self._embeddings, self._bank = bos_id, embeddings, bank
        self._next = (table.next_ids, table.next_kinds, table.next_values)
        self._prefix_len = model.config.prefix_len
        self._page_size = pool.page_size

    def upload_crops(self, slot: Slot, pictures: Seq[Picture]) -> Operation:
        """The pictures' crops, one after the other, into the slot."""
        crops: list[Tensor] = [picture.prepared.content.pixels for picture in pictures]

        def run() -> None:
            at = 0
            for pixels in crops:
                slot.pixels[at : at + len(pixels)].copy_(pixels, non_blocking=True)
                at += len(pixels)

        return Operation(run, crops, [slot.pixels])

    def vision(self, slot: Slot, pictures: Seq[Picture]) -> Operation:
        """Encode the slot's crops in one batch into the pictures' embedding entries."""
        count, keep = crops_of(pictures), self._keeper(pictures)

        def run() -> None:
            keep(self._model.vision.features(slot.pixels[:count]))

        return Operation(run, reads=[slot.pixels], writes=[self._embeddings])

    def _keeper(self, pictures: Seq[Picture]) -> Callable[[Tensor], None]:
        """Part of an operation: the features of the pictures' crops, to their embedding entries."""
        tilings = [picture.prepared.content.tiling for picture in pictures]
        entries = [picture.embedding for picture in pictures]

        def keep(features: Tensor) -> None:
            tokens = self._model.vision.project(features, tilings)
            for entry, image_tokens in zip(entries, tokens, strict=True):
                self._embeddings[entry].copy_(image_tokens)

        return keep

    def prefill(self, slot: Slot, work: Work, entries: Seq[int], rows: Ints) -> Operation:
        """The work's prefixes and the prompts of its sequences, at ``rows`` of the table, in one packed forward; before
        it, the adapters that were not there yet.

        ``entries``: the prefixes' embedding entries. Leaves each prompt's last hidden state in the slot.
        """
        arena, sequences = slot.inputs, work.sequences
        lengths = np.array([len(s.script.prompt.ids) for s in sequences], np.int64)
        prefixes = [prefix.place for prefix in work.prefixes if prefix.place is not None]
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
            (kinds,) = arena.place(kind_array.ravel())
            (values,) = slot.places.place(value_array.reshape(-1, 2))
        prompt, last = arena.place(ids.ravel(), layout.prefix_tokens + np.arange(len(sequences)) * width + lengths - 1)

        def run() -> None:
            if self._bank is not None:
                self._bank.load(work.loads)
            x = self._model.embed(prompt, kinds, values)
            if entries:
                x = torch.cat(
                    (self._model.prefix(self._bos_id, torch.stack([self._embeddings[e] for e in entries])), x)
                )
            hidden = self._model.text(x, self._pool, layout, self._deltas(layout))
            slot.hidden[: len(sequences)].copy_(hidden[last])

        reads = [slot.inputs.device, slot.places.device, self._embeddings, *self._reads(layout)]
        writes = [self._pool.keys, self._pool.values, slot.hidden]
        if self._bank is not None and work.loads:
            reads += self._bank.sources(work.loads)
            writes += self._bank.buffers
        return Operation(run, reads, writes, lambda: pages_of(sequences, work.prefixes))

    def decode(self, slot: Slot, sequences: Seq[Sequence], rows: Ints) -> Operation:
        """One token for each of the table's ``rows``, read from where the step before left it."""
        layout = decode_layout(slot.inputs, self._table, rows, prefix_len=self._prefix_len, page_size=self._page_size)
        (at,) = slot.inputs.place(rows)
        return replace(self._step(slot, at, layout), pages=lambda: pages_of(sequences, ()))

    def _step(self, slot: Slot, at: Tensor, layout: Layout) -> Operation:
        """Feed what the table holds for its rows ``at`` [rows]; their hidden states go to the slot."""

        def run() -> None:
            ids, kinds, values = (state[at] for state in self._next)
            hidden = self._model.text(self._model.embed(ids, kinds, values), self._pool, layout, self._deltas(layout))
            slot.hidden[: len(at)].copy_(hidden)

        reads = [slot.inputs.device, *self._next, *self._reads(layout)]
        return Operation(run, reads, [self._pool.keys, self._pool.values, slot.hidden])

    def _deltas(self, layout: Layout) -> Deltas | None:
        """What the step's adapters add: nothing at all where no row has one."""
        if layout.adapters is None or self._bank is None:
            return None
        return self._bank.deltas(layout.adapters)

    def _reads(self, layout: Layout) -> Seq[Tensor]:
        """The buffers of ``_deltas``."""
        return () if layout.adapters is None or self._bank is None else self._bank.buffers

    def sample(self, slot: Slot, rows: Ints) -> Operation:
        """Sample for the table's ``rows`` what they demand now; leave their next inputs on the device and the step's
        outcome in the slot's landing."""
        plan = plan_samples(self._table, rows, slot.controls, slot.weights)

        def run() -> None:
            self._leave(slot, plan.table_rows, self._sampler(slot.hidden[: plan.count], plan))

        reads = [slot.hidden, slot.controls.device, slot.weights.device]
        return Operation(run, reads, [*self._next, slot.landing])

    def _leave(self, slot: Slot, at: Tensor, samples: Samples) -> None:
        """Part of an operation: samples to the table's rows ``at`` and to the slot's landing."""
        for state, sampled in zip(self._next, (samples.tokens, samples.kinds, samples.values), strict=True):
            state[at] = sampled
        slot.landing[: len(at)].copy_(samples.landing)

    def read_back(self, slot: Slot, count: int) -> Operation:
        def run() -> None:
            slot.landed[:count].copy_(slot.landing[:count], non_blocking=True)

        return Operation(run, [slot.landing], [slot.landed])


def crops_of(pictures: Seq[Picture]) -> int:
    return sum(crop_count(picture.prepared.content.tiling) for picture in pictures)


def pages_of(sequences: Seq[Sequence], prefixes: Seq[Prefix]) -> Pages:
    """The pages of a step: it reads its rows' prefixes, and writes its rows' own and those of new prefixes."""
    read = {page for s in sequences if s.prefix is not None for page in s.prefix.pages}
    written = {page for s in sequences for page in s.pages} | {page for p in prefixes for page in p.pages}
    return Pages(frozenset(read | written), frozenset(written))


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
