"""One input row, where it stands, and what every source of rows can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from photon.core import Failure, Image
from photon.data.refused import Refused
from photon.data.unit import Unit


class RowRef(NamedTuple):
    """Where a row stands: ``row`` counts from 0 inside ``row_group`` (a Parquet row group or an Arrow batch).

    A tar is one group; a picture in a folder is a file with one row.
    """

    file: str
    row_group: int
    row: int

    @property
    def position(self) -> str:
        """ "file:row_group:row": the identity of a row, and its id where it has no other."""
        return f"{self.file}:{self.row_group}:{self.row}"


@dataclass(slots=True)
class Row:
    """One input row. ``index`` is its position in plan order, from 0 over the whole input.

    ``row_id`` is the id column's value as text, or ``ref.position`` where there is none. ``image`` is None where the
    cell was null, and not decoded. ``columns`` holds the values of the other columns that were asked for, None for one
    that could not be read: then the image is a ``Refused``, and so is one that could not be fetched.
    """

    index: int
    row_id: str
    ref: RowRef
    image: Image | None
    columns: dict[str, object]

    @property
    def failure(self) -> Failure | None:
        """Why the row has failed before anything was asked about it. Opening its image raises the same."""
        refused = self.image.source if self.image is not None else None
        return Failure(refused.code, refused.message) if isinstance(refused, Refused) else None


class Source(Protocol):
    """A finite sequence of rows in plan order, the same on every pass over an unchanged input."""

    @property
    def schema(self) -> pa.Schema:
        """All columns of the input, whether read or not."""

    @property
    def files(self) -> Sequence[str]:
        """The local files that the rows come from, pictures that rows name by their path left out."""

    def count(self) -> int | None:
        """The number of rows, None where only reading them would tell."""

    def units(self, known: Mapping[str, Unit] | None = None) -> list[Unit]:
        """What a plan freezes, in the order of the rows. Files that are as they were when they became ``known``, by
        name, need not be opened. Raises ``InputError`` for a file that cannot be read."""

    def rows(self, limit: int | None = None, *, start: int = 0) -> Iterator[Row]:
        """The rows with index ``start`` up to ``start + limit``, lazily, in bounded memory.

        A corrupt picture is a row like any other. Raises ``InputError`` where the input cannot be read, ``UsageError``
        where a file of it lacks a column.
        """
