"""``photon.Engine``: a model on a device, ready to answer requests. The loop that drives it is ``loop``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from photon.core import Image, ImageInfo, Request, Result
from photon.device.choose import DeviceName, open_device
from photon.device.device import Device
from photon.device.failure import closed_on_error
from photon.engine.adapters import AdapterBank, AdapterSlots
from photon.engine.admission import Admission
from photon.engine.captured import CapturedForward, GraphUse
from photon.engine.gate import DECODED_BYTES, ByteGate
from photon.engine.intake import Intake, Prepared
from photon.engine.loop import Loop
from photon.engine.options import (
    AdapterFiles,
    Semantics,
    check_choices,
    check_counts,
    chosen_dtype,
    chosen_graphs,
    load_adapters,
)
from photon.engine.pages import PagePool
from photon.engine.parts import make_forward, make_sampling, make_slots
from photon.engine.record import Listener
from photon.engine.ring import CropRing, RingEntry
from photon.engine.rows import RowTable
from photon.engine.scheduler import Scheduler
from photon.engine.sizes import Sizes, choose_sizes
from photon.engine.statistics import Statistics
from photon.engine.step import Step
from photon.engine.trace import Trace
from photon.engine.watchdog import stalled
from photon.errors import EngineError, StallError, UsageError
from photon.images.decode import DecodePolicy, decode, decoded_bytes
from photon.models.load import LoadedModel, load_model
from photon.models.tiling import canvas_size, crop_count, cut_crops, select_tiling
from photon.skills.registry import script_for
from photon.skills.skill import Decision

_HEARTBEAT = 1.0
"""Seconds that an engine with nothing to do sleeps at most before it looks whether it has stalled."""


class Engine:
    """Answers requests about images with one Moondream model. Make one with ``Engine.load``; one run at a time."""

    def __init__(
        self,
        loaded: LoadedModel,
        device: Device,
        sizes: Sizes,
        *,
        depth: int,
        decision: Decision,
        stop_repetition: bool,
        policy: DecodePolicy,
        stall_timeout: float = 300.0,
        bank: AdapterBank | None = None,
        graphs: bool = False,
    ) -> None:
        """Made by ``load``. ``graphs``: capture the steps, on a device that can."""
        model, config = loaded.model, loaded.model.config
        text, on = config.text, model.device
        self.fingerprint = loaded.fingerprint
        self.facts: dict[str, object] = {
            "fingerprint": loaded.fingerprint,
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": str(on),
            "max_batch": sizes.max_batch,
            "meaningless": loaded.meaningless,
            "adapters": {} if bank is None else bank.digests,
        }
        self._device, self._sizes, self._depth = device, sizes, depth
        self._policy, self._vision = policy, config.vision
        names = () if bank is None else tuple(bank.digests)
        self._admission = Admission(config.prefix_len, text.max_context, sizes.page_size, names)

        sampler, self._context = make_sampling(loaded, decision, stop_repetition)
        self._pages = PagePool(sizes.pages, sizes.page_size)
        self._adapters = AdapterSlots(0 if bank is None else bank.slots)
        self._table = RowTable(sizes.rows, sizes.prefixes, sizes.suffix_pages, sizes.prefix_pages, device)
        self._slots = make_slots(loaded, device, sizes)
        parts = (loaded, device, sizes, self._table, self._slots, sampler)
        self._forward = make_forward(*parts, bank=bank, graphs=graphs)
        if isinstance(self._forward, CapturedForward):
            self.facts["graphs"] = self._forward.facts
        self._ring = CropRing(device, entries=sizes.ring, crops=sizes.picture_crops, side=config.vision.crop_size)
        self._trace = Trace()
        self._stall_timeout = stall_timeout
        self._gate = ByteGate(DECODED_BYTES)
        self._to_cancel: deque[Request] = deque()
        self._busy = self._broken = self._closed = False

    @classmethod
    def load(
        cls,
        model: str,
        *,
        device: DeviceName = "auto",
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        max_batch: int | Literal["auto"] = "auto",
        depth: int = 2,
        decision: Decision = "masked",
        stop_repetition: bool | None = None,
        memory_fraction: float = 0.9,
        stall_timeout: float = 300.0,
        revision: str | None = None,
        tokenizer: str | None = None,
        tokenizer_revision: str | None = None,
        policy: DecodePolicy | None = None,
        adapters: AdapterFiles | None = None,
        adapter_semantics: Semantics | None = None,
        adapter_slots: int | Literal["auto"] = "auto",
        graphs: bool | Literal["auto"] = "auto",
    ) -> Engine:
        """Load ``model``: a folder, a hub id with ``revision``, ``photon://shapes`` or ``photon://tiny``.

        ``decision`` "reference" answers exactly as the public reference implementation does, which also means that
        repetition is not stopped unless ``stop_repetition`` says so. ``tokenizer``: a folder or hub id for checkpoints
        that come without one. ``policy``: how pictures are decoded. ``device`` auto is the
        CPU; ``dtype`` auto is float32 there and bfloat16 on CUDA.
        ``adapters``: files of LoRA adapters by the names that requests use; ``adapter_semantics`` None is "merged", or
        "reference" with that decision; ``adapter_slots``: how many are on the device at a time.
        ``graphs``: steps are captured when the engine is loaded and replayed in a run; auto is wherever the device can.
        ``stall_timeout``: seconds without a finished step after which a run ends as a ``StallError``. Raises
        ``UsageError`` for anything wrong with arguments or files, ``InputError`` when a hub is out of reach.
        """
        check_choices(dtype=dtype, depth=depth, decision=decision, adapter_semantics=adapter_semantics)
        check_counts(memory_fraction, max_batch=max_batch, adapter_slots=adapter_slots)
        on = open_device(device)
        with closed_on_error(on):
            captures = chosen_graphs(graphs, on)
            loaded = load_model(
                model,
                revision=revision,
                tokenizer=tokenizer,
                tokenizer_revision=tokenizer_revision,
                device=on.torch_device,
                dtype=chosen_dtype(dtype, on),
            )
            merged = (adapter_semantics or decision) != "reference"
            bank = load_adapters(adapters or {}, loaded.model, on, slots=adapter_slots, merged=merged)
            sizes = choose_sizes(
                loaded.model.config,
                max_batch=max_batch,
                device_type=on.torch_device.type,
                free_bytes=on.free_bytes(),
                itemsize=loaded.model.dtype.itemsize,
                memory_fraction=memory_fraction,
                adapters=bank is not None,
            )
            return cls(
                loaded,
                on,
                sizes,
                depth=depth,
                decision=decision,
                stop_repetition=decision != "reference" if stop_repetition is None else stop_repetition,
                policy=policy or DecodePolicy(),
                stall_timeout=stall_timeout,
                bank=bank,
                graphs=captures,
            )

    @property
    def statistics(self) -> Statistics:
        """Of the run under way, or else of the last one."""
        statistics = self._trace.statistics
        if isinstance(self._forward, CapturedForward):
            use = self._forward.use
            return replace(statistics, graph_replays=use.replays, graph_fallbacks=dict(use.eager))
        return statistics

    def run(self, requests: Iterable[Request], *, trace: Listener | None = None) -> Iterator[Result]:
        """Answer ``requests`` in completion order, pulling them, on a thread of its own, as there is room.

        What goes wrong with one request is its result's ``error``. An exception of the iterable ends the run as it
        is; one of the device ends it as an ``EngineError``. ``trace`` is given the record of every step at its commit:
        ``TraceFile(path).write``, or a list's ``append``.
        """
        self._check_free()
        to_cancel = self._to_cancel = deque()  # a new one: what is said too late to one run must not reach the next
        self._busy = True
        self._trace = Trace(trace)
        if isinstance(self._forward, CapturedForward):
            self._forward.use = GraphUse()
        self._ring.open()
        intake = Intake(
            requests,
            prepare=self._prepare,
            script=lambda request: script_for(request, self._context),
            max_ahead=64 + 16 * self._sizes.max_batch,
        )

        def forget(prepared: Prepared) -> bool:
            gone = intake.forget(prepared)
            if gone and (entry := prepared.take_content()) is not None:  # no request about it got as far as a step
                self._ring.release(entry)
            return gone

        scheduler = Scheduler(self._sizes, self._pages, self._table, self._admission.prefix_len, forget, self._adapters)
        parts = (self._forward, self._slots, scheduler, self._ring, self._admission)
        loop = Loop(self._device, *parts, self._depth, self._trace, self._stall_timeout)
        inflight: Step | None = None
        nothing_to_do = True
        try:
            while not (nothing_to_do and intake.exhausted):
                if not intake.inside:
                    loop.watchdog.progress()
                loop.admit(intake.poll(wait=nothing_to_do, timeout=_HEARTBEAT))
                for request in [to_cancel.popleft() for _ in range(len(to_cancel))]:
                    loop.cancel(request, coming=intake.holds(request))
                before, inflight = inflight, loop.tick(inflight)
                nothing_to_do = before is None and inflight is None
                if loop.watchdog.alarmed:
                    raise stalled(self._stall_timeout, loop.state(inflight))
                while loop.results:
                    intake.finished()
                    yield loop.results.popleft()
                    loop.watchdog.progress()
            if not scheduler.idle:
                raise EngineError("the engine is stuck: requests are waiting, and nothing can be launched")
            for part in (scheduler, self._slots, self._ring):
                part.check_home()
        except StallError:
            self._broken = True  # what hangs may still write to our memory
            raise
        except BaseException:
            self._recover()
            raise
        finally:
            self._ring.close()
            intake.close(wait=not self._broken)
            self._busy = False

    def check(self, request: Request) -> None:
        """Raises the ``RowError`` that ``request`` would fail with, whatever its picture. The device is not asked."""
        script = script_for(request, self._context)
        self._admission.room(len(script.prompt.ids), pictured=request.image is not None)

    def _check_free(self) -> None:
        for state, why in (
            (self._broken, "has stalled; load a new one"),
            (self._closed, "is closed; load a new one"),
            (self._busy, "is already running; finish or close that run first"),
        ):
            if state:
                raise UsageError(f"this engine {why}")

    def cancel(self, request: Request) -> None:
        """Give up a request of the run under way, from any thread: that very object, wherever it stands.

        Its result is a failure with the code CANCELLED: within two steps of the device if it was running, once its
        picture is decoded if it was on its way, and as always when the caller asks for results. What has been answered
        stays so; what the run has not pulled yet is not affected.
        """
        if self._busy:
            self._to_cancel.append(request)

    def _recover(self) -> None:
        """A run ended early. Let the device finish with the slots, then take everything back."""
        self._device.drain()
        self._pages.reset()
        self._table.reset()
        self._adapters.reset()
        self._slots.reset()

    def close(self) -> None:
        """Stop the device; the engine cannot run after. What hangs is left behind and ends with the process."""
        if not self._broken and not self._closed:
            self._device.close()
        self._closed = True

    def _prepare(self, image: Image) -> tuple[ImageInfo, RingEntry]:
        """On a decoding thread: the picture's crops, in the ring."""
        with self._gate.hold(decoded_bytes(image.source, self._policy)):
            picture, info = decode(image.source, self._policy, partial(canvas_size, vision=self._vision))
            tiling = select_tiling(info.height, info.width, self._vision)
            entry = self._ring.acquire(crop_count(tiling), tiling)
            cut_crops(picture, tiling, self._vision, entry.pixels.numpy(), fast=self._policy.fast)
        return info, entry
