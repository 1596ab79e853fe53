"""What to launch next, and who holds which row and page until when.

Admission reserves a request's worst case. The questions of one picture go in waves, first come first served; a
prefix is only made when, once every running request has ended, any waiting one would still fit, so that a picture
with more questions than rows cannot lock up the table.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from photon.core import Request
from photon.engine.adapters import AdapterSlots
from photon.engine.intake import Prepared
from photon.engine.pages import PagePool
from photon.engine.rows import NO_PREFIX, RowTable
from photon.engine.sampling import draw_row, noise_seed
from photon.engine.sequence import Picture, Prefix, Sequence
from photon.engine.sizes import Sizes
from photon.engine.work import Work
from photon.skills.grammar import Demand, Want

NOTHING = Demand(Want.NOTHING)


class Scheduler:
    def __init__(
        self,
        sizes: Sizes,
        pages: PagePool,
        table: RowTable,
        prefix_len: int,
        forget: Callable[[Prepared], bool],
        adapters: AdapterSlots | None = None,
    ) -> None:
        """``forget`` is told of pictures that nobody holds; it says whether that is so outside the engine too."""
        self.table = table
        self._adapters = adapters or AdapterSlots(0)
        self._sizes, self._pages, self._prefix_len = sizes, pages, prefix_len
        self._forget = forget
        self._pictures: dict[Prepared, Picture] = {}
        self._unseen: deque[Picture] = deque()  # to be encoded
        self._seen: deque[Prefix] = deque()  # of encoded pictures, with questions waiting
        self._bare: deque[Sequence] = deque()  # no image
        self._running: dict[Sequence, None] = {}  # launched and not finalized, in order of admission
        self._embeddings = list(range(sizes.embeddings - 1, -1, -1))

    # Requests come in.

    def prefix(self, prepared: Prepared, adapter: str | None) -> Prefix:
        picture = self._pictures.setdefault(prepared, Picture(prepared))
        return picture.prefixes.setdefault(adapter, Prefix(picture))

    def add(self, sequence: Sequence) -> None:
        prefix = sequence.prefix
        if prefix is None:
            self._bare.append(sequence)
            return
        picture = prefix.picture
        if not prefix.waiting:
            if prefix.place is not None:
                # In front: it holds pages, and whoever waits for pages behind it would wait for ever.
                self._seen.appendleft(prefix)
            elif picture.embedding is not None:
                self._seen.append(prefix)
            elif not picture.wanted:
                self._unseen.append(picture)
        prefix.waiting.append(sequence)
        self._give_up_idle(picture)

    @property
    def idle(self) -> bool:
        return not (self._unseen or self._seen or self._bare or self._running)

    # Work goes out.

    def choose(self) -> Work | None:
        """The next step, or None while everything that could go on is in flight.

        A ready prefill goes first: it turns one encoded picture into many rows. Pictures are encoded while there are
        rows that could ask about them, and when there is nothing else to do.
        """
        return (
            self._prefill()
            or (self._vision() if len(self._running) < self._sizes.max_batch else None)
            or self._decode()
            or self._vision()
        )

    def _vision(self) -> Work | None:
        chosen: list[Picture] = []
        crops = 0
        while self._unseen and self._embeddings:
            crops += len(self._unseen[0].prepared.content.pixels)
            if chosen and crops > self._sizes.vision_crops:
                break
            picture = self._unseen.popleft()
            picture.embedding = self._embeddings.pop()
            picture.encoding = True
            chosen.append(picture)
            self._seen += (prefix for prefix in picture.prefixes.values() if prefix.waiting)
        return Work("vision", pictures=chosen) if chosen else None

    def _decode(self) -> Work | None:
        chosen = [sequence for sequence in self._running if sequence.samples < sequence.max_samples]
        return Work("decode", chosen) if chosen else None

    def _prefill(self) -> Work | None:
        work = Work("prefill")
        width, prefixes = 0, 0
        while (sequence := self._next_waiting()) is not None:
            prefix = sequence.prefix
            fresh = prefix is not None and prefix.place is None
            width = max(width, len(sequence.script.prompt.ids))
            tokens = (prefixes + fresh) * self._prefix_len + (len(work.sequences) + 1) * width
            if work.sequences and tokens > self._sizes.prefill_tokens:
                break
            if not self._fits(sequence, fresh):
                break
            sequence.adapter = self._adapters.acquire(sequence.request.settings.adapter, work.loads)
            if prefix is not None and fresh:
                self._start_prefix(prefix, sequence.adapter)
                work.prefixes.append(prefix)
                work.pictures.append(prefix.picture)
                prefixes += 1
            self._start(sequence)
            work.sequences.append(sequence)
        return work if work.sequences else None

    def _next_waiting(self) -> Sequence | None:
        if self._bare:
            return self._bare[0]
        return self._seen[0].waiting[0] if self._seen else None

    def _fits(self, sequence: Sequence, fresh: bool) -> bool:
        full = len(self._running) >= self._sizes.max_batch or not self.table.free_rows
        if full or not self._adapters.has_room(sequence.request.settings.adapter):
            return False
        if not fresh:
            return self._pages.free >= sequence.pages_needed
        prefix_pages = self._sizes.prefix_pages
        held = sum(len(prefix.pages) for picture in self._pictures.values() for prefix in picture.prefixes.values())
        return (
            self.table.free_prefixes > 0
            and self._pages.free >= prefix_pages + sequence.pages_needed
            and self._pages.capacity - held - prefix_pages >= self._sizes.suffix_pages
        )

    def _start_prefix(self, prefix: Prefix, adapter: int) -> None:
        prefix.pages = self._pages.acquire(self._sizes.prefix_pages)
        prefix.place = self.table.acquire_prefix(prefix.pages, adapter)

    def _start(self, sequence: Sequence) -> None:
        prefix = sequence.prefix
        if prefix is None:
            self._bare.popleft()
        else:
            prefix.waiting.popleft()
            prefix.users += 1
            if not prefix.waiting:
                self._seen.popleft()
        sequence.pages = self._pages.acquire(sequence.pages_needed)
        sequence.row = self.table.acquire_row(
            base=0 if prefix is None else self._prefix_len,
            prefix=NO_PREFIX if prefix is None or prefix.place is None else prefix.place,
            pages=sequence.pages,
            adapter=sequence.adapter,
        )
        settings = sequence.request.settings
        self.table.demand[sequence.row] = sequence.script.grammar.demand(1)
        self.table.seed[sequence.row] = noise_seed(settings.seed)
        self.table.draw[sequence.row] = draw_row(settings)
        sequence.started = time.monotonic()
        self._running[sequence] = None

    # Things come home.

    def read_embeddings(self, pictures: list[Picture]) -> list[int]:
        """The entries of pictures whose prefill is being launched. They are given up, unless another adapter may ask
        for them yet; one compute stream keeps their readers ahead of the next writer."""
        entries = [picture.embedding for picture in pictures if picture.embedding is not None]
        if not self._adapters.count:
            for picture in pictures:
                self._give_up_embedding(picture)
        return entries

    def _give_up_embedding(self, picture: Picture) -> None:
        entry, picture.embedding = picture.embedding, None
        assert entry is not None
        self._embeddings.append(entry)

    def encoded(self, pictures: list[Picture]) -> None:
        """Their vision step is committed."""
        for picture in pictures:
            picture.encoding = False
            self.let_go(picture.prepared)

    def first_samples_planned(self, sequences: list[Sequence]) -> None:
        """From their second sample on, rows whose mask hangs on no token demand the same for good."""
        for sequence in sequences:
            if not sequence.held:
                self.table.demand[sequence.row] = sequence.script.grammar.demand(2)

    def finalize(self, sequence: Sequence) -> None:
        """The sequence's result is out: it is launched no more. Steps in flight still hold it."""
        sequence.finalized = True
        self.table.demand[sequence.row] = NOTHING
        del self._running[sequence]

    def withdraw(self, request: Request) -> Sequence | None:
        """Take a request back, wherever it stands: its sequence, unless it has none any more or not yet."""
        for sequence in self._running:
            if sequence.request is request:
                self.finalize(sequence)
                self._free_unless_held(sequence)
                return sequence
        prefixes = (prefix for picture in self._pictures.values() for prefix in picture.prefixes.values())
        for queue in (self._bare, *(prefix.waiting for prefix in prefixes)):
            for sequence in queue:
                if sequence.request is request:
                    queue.remove(sequence)
                    self._leave_queue(sequence.prefix)
                    return sequence
        return None

    def _leave_queue(self, prefix: Prefix | None) -> None:
        """One of its requests waits no more."""
        if prefix is None or prefix.waiting:
            return
        if prefix in self._seen:
            self._seen.remove(prefix)
        elif not prefix.picture.wanted:
            self._unseen.remove(prefix.picture)
        self.let_go(prefix.picture.prepared)

    def drop_references(self, sequences: list[Sequence]) -> None:
        """A step lets go of its sequences: the one place that counts down."""
        for sequence in sequences:
            sequence.inflight_refs -= 1
            if sequence.finalized:
                self._free_unless_held(sequence)

    def _free_unless_held(self, sequence: Sequence) -> None:
        """The one place that frees rows, pages and adapter slots: of a sequence whose result is out, once no step holds
        it."""
        if sequence.inflight_refs:
            return
        self.table.release_row(sequence.row)
        self._pages.release(sequence.pages)
        sequence.pages = []
        self._adapters.release(sequence.adapter)
        if sequence.prefix is not None:
            sequence.prefix.users -= 1
            self.let_go(sequence.prefix.picture.prepared)

    def let_go(self, prepared: Prepared) -> None:
        """Free a picture once nobody uses it, nobody waits for it, and no request for it is on its way."""
        picture = self._pictures.get(prepared)
        if picture is not None and picture.held:
            self._give_up_idle(picture)
        elif self._forget(prepared) and picture is not None:
            if picture.embedding is not None:
                self._give_up_embedding(picture)
            for prefix in picture.prefixes.values():
                self._give_up_prefix(prefix)
            del self._pictures[prepared]

    def _give_up_idle(self, picture: Picture) -> None:
        """Where one adapter's prefix is in use or waits for pages, those of others must not keep pages for nothing."""
        if len(picture.prefixes) > 1:
            for prefix in picture.prefixes.values():
                if prefix.idle:
                    self._give_up_prefix(prefix)

    def _give_up_prefix(self, prefix: Prefix) -> None:
        if prefix.place is not None:
            self.table.release_prefix(prefix.place)
            self._pages.release(prefix.pages)
            prefix.place, prefix.pages = None, []

    def state(self) -> str:
        return (
            f"{len(self._running)} rows run, {len(self._unseen)} pictures wait to be encoded, {len(self._seen)} and "
            f"{len(self._bare)} requests without one wait for a row, {self._pages.free} of {self._pages.capacity} "
            "pages are free"
        )

    def check_home(self) -> None:
        """Nothing is held. Called when a run has ended; what it finds would be a bug."""
        self._pages.check_home()
        self.table.check_home()
        self._adapters.check_home()
        if self._pictures or len(self._embeddings) != self._sizes.embeddings:
            raise AssertionError(f"{len(self._pictures)} pictures are still held")
