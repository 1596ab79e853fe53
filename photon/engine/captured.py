"""The device's part of a step as captured graphs, where there is one that fits; else as ``forward`` runs it.

For each slot and bucket of rows: decode, decode with sampling of text behind it in one graph, and sampling alone, by
the heads that it asks. For each slot and bucket of crops: the vision encoder; stitching and projection hang on the
pictures' tilings and stay eager, as does all of a prefill but its sampling. Drawn rows are sampled eagerly.

A graph reads its step's numbers where they lay when it was captured: at the start of the slot's arenas, in shapes that
hang on the bucket alone. Padding is the table's dummy row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from torch import Tensor

from photon.device.device import Device, Operation
from photon.engine.buckets import bucket_of, crop_buckets, row_buckets
from photon.engine.forward import Forward, crops_of, pages_of
from photon.engine.layout import bucket_layout
from photon.engine.rows import Ints
from photon.engine.sequence import Picture, Sequence
from photon.engine.sizes import Sizes
from photon.engine.slots import Slot, Slots, upload
from photon.engine.static_sampling import HEADS, Heads, StaticSampler, heads_for
from photon.kernels.flat import FlatLayout
from photon.skills.grammar import Want

log = logging.getLogger(__name__)

Kind: TypeAlias = Literal["decode", "decode and text", "vision"] | Heads
_Key: TypeAlias = tuple[Slot, Kind, int, bool]
"""``bool``: with adapters."""


@dataclass(slots=True)
class GraphUse:
    """How often a graph was replayed since the start of a run, and what ran eagerly instead, how often."""

    replays: int = 0
    eager: dict[str, int] = field(default_factory=dict)


class CapturedForward(Forward):
    """``rows`` and ``crops``: the buckets that are captured; ``missed``: those that could not be, and why. ``use``:
    since the start of a run."""

    def __init__(self, *parts: Any, device: Device, slots: Slots, sizes: Sizes, **options: Any) -> None:
        """``parts`` and ``options`` are those of ``Forward``. Captures everything, the largest first: what the smaller
        ones take for a moment fits into what the largest took."""
        super().__init__(*parts, **options)
        self._static = StaticSampler(self._sampler)
        vision = self._model.config.vision
        crops = (sizes.slot_crops, vision.grid**2, vision.enc_dim)
        self._features = device.buffer(*crops, dtype=self._model.dtype)  # within one operation: both slots' graphs
        self._graphs: dict[_Key, Operation] = {}
        self.missed: dict[str, str] = {}
        self.use = GraphUse()
        self._told: set[str] = set()
        self.crops = self._capture("vision", device, slots, crop_buckets(sizes.slot_crops))
        self.rows = self._capture("decode", device, slots, row_buckets(sizes.max_batch))
        for slot in slots:
            slot.clear()
        for what, why in self.missed.items():
            log.warning("%s could not be captured and runs without a graph: %s", what, why)

    @property
    def facts(self) -> dict[str, object]:
        return {"rows": list(self.rows), "crops": list(self.crops), "missed": dict(self.missed)}

    # Steps.

    def vision(self, slot: Slot, pictures: Seq[Picture]) -> Operation:
        count, keep = crops_of(pictures), self._keeper(pictures)
        encode = self._graph(slot, "vision", count)
        if encode is None:
            return super().vision(slot, pictures)

        def run() -> None:
            encode.run()
            keep(self._features[:count])

        return Operation(run, encode.reads, [*encode.writes, self._embeddings])

    def decode(self, slot: Slot, sequences: Seq[Sequence], rows: Ints) -> Operation:
        """Where no mask hangs on a token in flight and all rows are text to be chosen greedily, samples too."""
        adapted = self._table.adapted > 0 and bool(self._table.adapter[rows].any())
        known = not any(sequence.held and sequence.inflight_refs for sequence in sequences)
        kind: Kind = "decode and text" if known and self._heads(rows) == "text" else "decode"
        step = self._graph(slot, kind, len(rows), adapted)
        if step is None:
            return super().decode(slot, sequences, rows)
        bucket = bucket_of(len(rows), self.rows)
        assert bucket is not None
        self._stage_decode(slot, rows, bucket)
        if kind != "decode":
            self._stage_demand(slot, rows, bucket)
            slot.sampled = True
        return replace(step, pages=lambda: pages_of(sequences, ()))

    def sample(self, slot: Slot, rows: Ints) -> Operation:
        heads = self._heads(rows)
        if heads is None:
            self._fall_back("sampling of drawn rows")
            return super().sample(slot, rows)
        step = self._graph(slot, heads, len(rows))
        if step is None:
            return super().sample(slot, rows)
        bucket = bucket_of(len(rows), self.rows)
        assert bucket is not None
        self._stage_demand(slot, rows, bucket)
        return step

    def _heads(self, rows: Ints) -> Heads | None:
        """What the rows' next samples ask; None where one of them is drawn."""
        wants = self._table.demand[rows, 0]
        drawn = self._table.draw[rows, 0] != 0
        return None if (drawn & (wants & Want.TOKEN != 0)).any() else heads_for(wants)

    def _graph(self, slot: Slot, kind: Kind, count: int, adapted: bool = False) -> Operation | None:
        bucket = bucket_of(count, self.crops if kind == "vision" else self.rows)
        if bucket is None:
            what = "vision" if kind == "vision" else "decode" if kind.startswith("decode") else "sampling"
            self._fall_back(f"{what} of a size that is not captured")
            return None
        self.use.replays += 1
        return self._graphs[slot, kind, bucket, adapted]

    def _fall_back(self, what: str) -> None:
        self.use.eager[what] = self.use.eager.get(what, 0) + 1
        if what not in self._told:
            self._told.add(what)
            log.info("%s runs without a graph; the statistics say how often", what)

    # Staging: the same arrays in the same places, at capture and at every step.

    def _stage_decode(self, slot: Slot, rows: Ints, bucket: int) -> tuple[Tensor, FlatLayout]:
        return bucket_layout(
            slot.inputs,
            self._table,
            rows,
            bucket,
            prefix_len=self._prefix_len,
            page_size=self._page_size,
            adapters=self._bank is not None,
        )

    def _stage_demand(self, slot: Slot, rows: Ints, bucket: int) -> tuple[Tensor, Tensor]:
        """Row numbers [bucket] and their demands [bucket, 4]."""
        if slot.controls.used:
            raise AssertionError("a captured step's demands begin where its slot's staging does")
        padded = self._table.padded(rows, bucket)
        at, demand = slot.controls.place(padded, self._table.demand[padded])
        return at, demand

    # Capture.

    def _capture(self, what: str, device: Device, slots: Slots, buckets: Seq[int]) -> tuple[int, ...]:
        """Capture each bucket for every slot, or leave it out whole: the ascending buckets that are there."""
        operations = self._encoder if what == "vision" else self._steps
        there: list[int] = []
        for bucket in reversed(buckets):
            made: dict[_Key, Operation] = {}
            try:
                for slot in slots:
                    for kind, adapted, operation in operations(device, slot, bucket):
                        made[slot, kind, bucket, adapted] = replace(operation, run=device.capture(operation))
            except Exception as error:  # of any kind: the same work runs without a graph
                self.missed[f"{what} {bucket}"] = f"{type(error).__name__}: {error}"
            else:
                there.append(bucket)
                self._graphs |= made
        return tuple(reversed(there))

    def _encoder(self, _: Device, slot: Slot, bucket: int) -> Iterator[tuple[Kind, bool, Operation]]:
        def run() -> None:
            self._features[:bucket].copy_(self._model.vision.features(slot.pixels[:bucket]))

        yield "vision", False, Operation(run, [slot.pixels], [self._features])

    def _steps(self, device: Device, slot: Slot, bucket: int) -> Iterator[tuple[Kind, bool, Operation]]:
        """Of nothing but padding, so that running them changes nothing of a sequence's."""
        slot.clear()
        nobody = np.empty(0, np.int64)
        at, layout = self._stage_decode(slot, nobody, bucket)
        sampled_at, demand = self._stage_demand(slot, nobody, bucket)
        device.launch("upload", upload(slot.inputs, slot.controls)).wait()
        for adapted in (False, True) if self._bank is not None else (False,):
            decode = self._step(slot, at, layout if adapted else replace(layout, adapters=None))
            yield "decode", adapted, decode
            yield "decode and text", adapted, _both(decode, self._heads_alone(slot, sampled_at, demand, "text"))
        for heads in HEADS:
            yield heads, False, self._heads_alone(slot, sampled_at, demand, heads)

    def _heads_alone(self, slot: Slot, at: Tensor, demand: Tensor, heads: Heads) -> Operation:
        def run() -> None:
            self._leave(slot, at, self._static(slot.hidden[: len(at)], demand, heads))

        return Operation(run, [slot.hidden, slot.controls.device], [*self._next, slot.landing])


def _both(first: Operation, second: Operation) -> Operation:
    """One after the other, as one operation."""

    def run() -> None:
        first.run()
        second.run()

    return Operation(run, [*first.reads, *second.reads], [*first.writes, *second.writes])
