"""Rows of an output with their pictures, read again from the input that the run's manifest names.

Only the rows that are wanted are read, one at a time. What no longer is what the run saw is told and not shown:
answers drawn on another picture would be wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from photon.core import Failure
from photon.data.row import Row, Source
from photon.errors import RowError
from photon.images.decode import DecodePolicy, decode
from photon.job.again import for_pictures, manifest_of, reading_again
from photon.job.output import RunOutput
from photon.job.sources import open_planned, open_source

if TYPE_CHECKING:
    from PIL import Image

#: What is shown of every row, beside its tasks' answers.
COLUMNS = ("row_id", "status", "error_code", "error_message", "image")
_SEEN = ("width", "height", "frame", "sha256")
_NEAR = 64  # rows: to read them costs less than to open the input at another place


@dataclass(frozen=True, slots=True)
class ShownRow:
    """``index`` is the row's place in the input, ``cells`` are those of the result. ``picture`` is RGB, in full size
    and in the frame that the row records; None where there is none, and ``problem`` says why."""

    index: int
    cells: Mapping[str, Any]
    picture: Image.Image | None
    problem: Failure | None = None


def sample(total: int, rows: int, seed: int = 0) -> list[int]:
    """``rows`` positions of ``total``, ascending: one from each of as many equal stretches, drawn by ``seed``. All of
    them where there are no more. The same arguments give the same positions."""
    if total <= rows:
        return list(range(total))
    dice = random.Random(seed)
    edges = [total * n // rows for n in range(rows + 1)]
    return [start + int(dice.random() * (stop - start)) for start, stop in pairwise(edges)]


def shown_rows(output: RunOutput, positions: Sequence[int], tasks: Sequence[str]) -> Iterator[ShownRow]:
    """The rows at ascending ``positions`` of the output, with the answers of ``tasks``. A row whose picture the run
    could not read is not looked for in the input. Raises ``InputError`` where the input is gone or cannot be read."""
    pictures: _Pictures | None = None
    for index, cells in output.pick(positions, [*COLUMNS, *tasks]):
        if cells["image"] is None and cells["status"] != "ok":
            failure = Failure(cells["error_code"] or "FAILED", cells["error_message"] or "")
            yield ShownRow(index, cells, None, failure)
            continue
        pictures = pictures or _Pictures(output)
        picture, problem = pictures.read(index, cells)
        yield ShownRow(index, cells, picture, problem)


class _Pictures:
    """Pictures of rows that are asked for in ascending order. What they raise says that it is about reading again."""

    def __init__(self, output: RunOutput) -> None:
        self._root = output.root
        manifest = manifest_of(output)
        self._policy = DecodePolicy(**manifest.image.model_dump())
        with reading_again(self._root):
            asked = for_pictures(manifest)
            self._plan = output.plan
            self._source: Source = open_source(asked) if self._plan is None else open_planned(asked, self._plan)
        self._fetches = manifest.input.urls.fetch
        self._rows: Iterator[Row] = iter(())
        self._next: int | None = None

    def read(self, place: int, cells: Mapping[str, Any]) -> tuple[Image.Image | None, Failure | None]:
        """The picture of the row at ``place`` in the plan, or why it is not shown."""
        index = place if self._plan is None else self._plan.index_of(place)
        with reading_again(self._root):
            row = self._row(index)
        if row is None:
            return None, Failure("INPUT_CHANGED", "the input ends before this row now")
        if row.row_id != cells["row_id"]:
            return None, Failure("INPUT_CHANGED", f"the input holds another row here now, {row.row_id}")
        if row.image is None:
            return None, Failure("IMAGE_MISSING", "the image cell is null now")
        try:
            picture, info = decode(row.image.source, self._policy)
        except RowError as error:
            return None, Failure(error.code, f"not readable any more: {error}")
        was = cells["image"]  # null where the engine looked at no picture: photon://null
        if was is not None and any(getattr(info, name) != was[name] for name in _SEEN if was[name] is not None):
            return None, Failure("IMAGE_CHANGED", "the picture is not the one that the run saw")
        return picture, None

    def _row(self, index: int) -> Row | None:
        if self._fetches:  # a row at a time, since reading on would fetch what lies between, and ahead
            return next(self._source.rows(1, start=index), None)
        if self._next is None or (index - self._next > _NEAR and self._source.count() is not None):
            self._rows, self._next = self._source.rows(start=index), index
        # A source that cannot count cannot jump either: reading on is all that it does.
        row = next(islice(self._rows, index - self._next, None), None)
        self._next = index + 1
        return row
