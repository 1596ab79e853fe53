"""The tick: launch the forward of step t+1, commit step t, finalize t+1.

The in-flight step is an argument and a return value. Masks belong to sampling, not to the forward, so the next
forward starts before the last step's tokens are known to the host; its input tokens are on the device already. Where
no mask needs those tokens, sampling starts before the commit too. With ``depth`` 1 every step is committed before the
next is launched: the blocking engine is the same loop.

Knows nothing of models or skills; what is launched next is the scheduler's choice.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from photon.core import Request, Result
from photon.device.device import Device, Operation
from photon.engine.admission import Admission
from photon.engine.forward import Forward
from photon.engine.intake import Arrival
from photon.engine.record import Span
from photon.engine.results import answered, failed
from photon.engine.ring import CropRing
from photon.engine.rows import Ints
from photon.engine.scheduler import Scheduler
from photon.engine.sequence import Sequence
from photon.engine.slots import Slot, Slots, upload
from photon.engine.step import Step
from photon.engine.trace import Trace
from photon.engine.watchdog import Watchdog, stalled
from photon.engine.work import Work
from photon.errors import EngineError, RowError, UsageError
from photon.skills.grammar import Demand, Sample


class Loop:
    def __init__(
        self,
        device: Device,
        forward: Forward,
        slots: Slots,
        scheduler: Scheduler,
        ring: CropRing,
        admission: Admission,
        depth: int,
        trace: Trace | None = None,
        stall_timeout: float = math.inf,
    ) -> None:
        self._device, self._forward, self._slots = device, forward, slots
        self._scheduler, self._ring, self._admission = scheduler, ring, admission
        self._depth = depth
        self._trace = trace or Trace()
        self._cancelled_ahead: dict[int, Request] = {}  # by identity, until they arrive
        self.watchdog = Watchdog(stall_timeout)
        self.results: deque[Result] = deque()

    def tick(self, inflight: Step | None) -> Step | None:
        if inflight is not None and self._depth == 1:
            self.commit(inflight)
            inflight = None
        step = self.launch()
        ahead = step is not None and step.masks_known
        if step is not None and ahead:
            self.finalize(step)
        if inflight is not None:
            self.commit(inflight)
        if step is not None and not ahead:
            self.finalize(step)
        return step

    def launch(self) -> Step | None:
        """Start the forward of the next work. It needs no mask, and reads its input tokens on the device."""
        began = self._device.now()
        work = self._scheduler.choose()
        if work is None:
            return None
        slot = self._slots.acquire()
        rows = np.array([sequence.row for sequence in work.sequences], np.int64)
        if work.kind == "vision":
            operation = self._forward.vision(slot, work.pictures)
            staged = self._forward.upload_crops(slot, work.pictures)
        else:
            operation = (
                self._prefill(slot, work, rows)
                if work.kind == "prefill"
                else self._forward.decode(slot, work.sequences, rows)
            )
            staged = upload(slot.inputs, slot.places, slot.controls)
        for sequence in work.sequences:
            sequence.samples += 1
            sequence.inflight_refs += 1
        uploaded = self._device.launch("upload", staged)
        forward = self._device.launch("compute", operation, after=[uploaded])
        span = Span(began, self._device.now())
        return Step(work.kind, slot, span, uploaded, forward, work.sequences, work.pictures, rows)

    def _prefill(self, slot: Slot, work: Work, rows: Ints) -> Operation:
        entries = self._scheduler.read_embeddings(work.pictures)
        return self._forward.prefill(slot, work, entries, rows)

    def commit(self, step: Step) -> None:
        """Take in a step, once it is reached."""
        waited = self._wait(step)
        self.watchdog.progress()
        if step.kind == "vision":
            for picture in step.pictures:
                self._ring.release(picture.prepared.take_content())
            self._scheduler.encoded(step.pictures)
        rows: list[int] = []
        demands: list[int] = []  # flat: numpy takes a long list of numbers much faster than a list of tuples
        zombies = 0
        for sequence, sample in zip(step.sequences, step.slot.read_landed(len(step.sequences)), strict=True):
            if sequence.finalized:
                zombies += 1
            elif (demand := self._advance(sequence, sample)) is not None:
                rows.append(sequence.row)
                demands += demand
        self._scheduler.drop_references(step.sequences)
        self._scheduler.table.require(rows, demands)
        self._slots.release(step.slot)
        self._trace.add(step, zombies, waited, Span(waited.end, self._device.now()))

    def _wait(self, step: Step) -> Span:
        """The one place where the host waits for the device."""
        began = self._device.now()
        try:
            step.event.wait(self.watchdog.timeout)
        except TimeoutError:
            raise stalled(self.watchdog.timeout, self.state(step)) from None
        except UsageError:  # out of memory: it says what to lower
            raise
        except Exception as error:
            what = f"{step.kind} step of {len(step.sequences)} rows"
            raise EngineError(f"the device failed in a {what}: {type(error).__name__}: {error}") from error
        return Span(began, self._device.now())

    def finalize(self, step: Step) -> None:
        """Sample, now that every grammar knows its last token; then bring the outcome home. A step whose forward has
        sampled, since no mask was wanting, only has to be brought home."""
        if not step.sequences:
            return
        began = self._device.now()
        slot, count = step.slot, len(step.sequences)
        if not slot.sampled:
            sample = self._forward.sample(slot, step.rows)
            step.controls = self._device.launch("upload", upload(slot.controls, slot.weights))
            step.sampled = self._device.launch("compute", sample, after=[step.forward, step.controls])
        left = step.sampled or step.forward
        step.copied = self._device.launch("readback", self._forward.read_back(slot, count), after=[left])
        if step.kind == "prefill":
            self._scheduler.first_samples_planned(step.sequences)
        step.finalize = Span(began, self._device.now())

    def admit(self, arrivals: list[Arrival]) -> None:
        """Queue what has arrived; what cannot run is answered at once."""
        refused = []
        for arrival in arrivals:
            try:
                if self._cancelled_ahead.pop(id(arrival.request), None) is not None:
                    raise _cancellation()
                sequence = self._admission.sequence(arrival)
            except RowError as error:
                info = arrival.prepared.info if arrival.prepared is not None else None
                self.results.append(failed(arrival.request.id, error, info))
                if arrival.prepared is not None:
                    refused.append(arrival.prepared)
                continue
            if arrival.prepared is not None:
                sequence.prefix = self._scheduler.prefix(arrival.prepared, arrival.request.settings.adapter)
            self._scheduler.add(sequence)
        for prepared in refused:  # only now: another arrival may be about the same picture
            self._scheduler.let_go(prepared)

    def cancel(self, request: Request, *, coming: bool) -> None:
        """Between ticks: answer a request with CANCELLED instead of going on, or, where it is still ``coming``, once it
        arrives. Nothing if it has been answered."""
        sequence = self._scheduler.withdraw(request)
        if sequence is not None:
            self.results.append(failed(request.id, _cancellation(), sequence.info))
        elif coming:
            self._cancelled_ahead[id(request)] = request

    def state(self, inflight: Step | None) -> str:
        """What the engine holds, for a person who wonders why it does not go on."""
        step = f"a {inflight.kind} step of {len(inflight.sequences)} rows" if inflight is not None else "nothing"
        return f"{step} is in flight; {self._scheduler.state()}"

    def _advance(self, sequence: Sequence, sample: Sample) -> Demand | None:
        """Take in one row's sample; what the row demands next, where that hangs on it."""
        committed = sequence.committed = sequence.committed + 1
        grammar = sequence.script.grammar
        reason = grammar.advance(sample)
        if reason is None and committed >= sequence.max_samples:
            reason = "length"
        if reason is not None:
            self._scheduler.finalize(sequence)
            self.results.append(answered(sequence, reason))
            return None
        return grammar.demand(committed + 1) if sequence.held else None


def _cancellation() -> RowError:
    return RowError("CANCELLED", "given up by the caller")
