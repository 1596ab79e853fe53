"""Rows whose pictures are at URLs, with the pictures: fetched ahead, side by side, and given on in plan order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from photon.core import Image
from photon.data.download import Downloader, FetchPolicy
from photon.data.refused import Refused
from photon.data.row import Row, Source
from photon.data.unit import Unit
from photon.errors import ImageError

_HELD_BYTES = 128 << 20
_WINDOW = 4  # rows ahead for each download at a time, so that a slow one does not hold up the others

_Waiting: TypeAlias = tuple[Row, Future[Image] | None]
_Ahead: TypeAlias = deque[_Waiting]


class Fetched:
    """A ``Source`` like ``source``, but that image cells which hold http(s) URLs become the bytes found there.

    A picture that cannot be had is a row that fails, with one of ``Downloader.get``'s codes. Fetched pictures that wait
    for their turn take 128 MiB, those on their way at most ``parallel * max_bytes`` more.
    """

    def __init__(self, source: Source, policy: FetchPolicy) -> None:
        self.inner = source
        self._policy = policy

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def files(self) -> Sequence[str]:
        return self.inner.files

    def count(self) -> int | None:
        return self.inner.count()

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        return self.inner.units(known)

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        ahead: _Ahead = deque()
        downloader = Downloader(self._policy)
        pool = ThreadPoolExecutor(self._policy.parallel, thread_name_prefix="fetch")
        try:
            for row in self.inner.rows(limit, start=start):
                while (full := self._is_full(ahead)) or len(flying := _flying(ahead)) >= self._policy.parallel:
                    if full or ahead[0][1] not in flying:
                        yield _finished(*ahead.popleft())
                    else:
                        wait(flying, return_when=FIRST_COMPLETED)
                url = _url(row)
                ahead.append((row, None if url is None else pool.submit(_fetch, downloader, url)))
            while ahead:
                yield _finished(*ahead.popleft())
        finally:
            downloader.stop()
            pool.shutdown(wait=False, cancel_futures=True)

    def _is_full(self, ahead: _Ahead) -> bool:
        return len(ahead) >= _WINDOW * self._policy.parallel or sum(map(_held, ahead)) > _HELD_BYTES


def _url(row: Row) -> str | None:
    source = row.image.source if row.image is not None else None
    return source.url if isinstance(source, Refused) else None


def _fetch(downloader: Downloader, url: str) -> Image:
    try:
        return Image(downloader.get(url))
    except ImageError as error:
        return Image(Refused(error.code, str(error)))


def _finished(row: Row, fetched: Future[Image] | None) -> Row:
    return row if fetched is None else replace(row, image=fetched.result())


def _flying(ahead: _Ahead) -> set[Future[Image]]:
    return {fetched for _, fetched in ahead if fetched is not None and not fetched.done()}


def _held(waiting: _Waiting) -> int:
    """Bytes of a row's picture that are here already."""
    row, fetched = waiting
    image = row.image if fetched is None else fetched.result() if fetched.done() else None
    return len(image.source) if image is not None and isinstance(image.source, bytes) else 0
