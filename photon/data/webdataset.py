"""Rows of WebDataset tars: files of one key make a row, in the order of the tar. Members are read one at a time.

Columns are those of the first tar: ``__key__``; ``image``, a sample's first member that is named as a picture; each
kind of member by its suffix (``png``, ``left.png``); and the fields of JSON members (``json.caption``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.types as pat

from photon.data.cells import NumberedCells
from photon.data.columns import Columns
from photon.data.files import expand, is_remote, open_remote
from photon.data.folder import SUFFIXES
from photon.data.grouped import GroupedFiles, Groups
from photon.data.refused import Unreadable
from photon.data.tar_index import Sample, Span, index_tar
from photon.data.unit import Unit

log = logging.getLogger(__name__)

_TEXT = frozenset({"txt", "text", "transcript", "json"})
_NUMBERS = frozenset({"cls", "cls2", "class", "count", "index", "inx", "id"})
_LOOKED_AT = 100  # samples of the first tar, for the fields of JSON members
_KEPT_MEMBERS = 200_000  # some 40 MB of places


class WebDatasetSource(GroupedFiles):
    """A ``Source`` over the tars that ``patterns`` name. A tar is one group.

    A part that a sample lacks is null; text that is not UTF-8, a number that is none and a JSON field that does not fit
    its column make a row that fails. Errors as in ``ParquetSource``; ``UsageError`` for a compressed tar as well.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        image: str = "image",
        id: str | None = None,
        columns: Sequence[str] = (),
        units: Sequence[Unit] | None = None,
    ) -> None:
        self._tar_schema: pa.Schema | None = None
        self._indexes: dict[str, list[Sample]] = {}
        super().__init__(expand(patterns) if units is None else (), Columns(image, id, tuple(columns)), units)

    @contextmanager
    def _open(self, file: str) -> Iterator[Groups]:
        # Unbuffered: to index a tar is to read its headers, and a member is one read.
        with open_remote(file) if is_remote(file) else open(file, "rb", buffering=0) as tar:
            samples = self._index(file, tar)
            if self._tar_schema is None:
                self._tar_schema = _schema_of(tar, samples)
            yield _Samples(tar, samples, self._tar_schema)

    def _index(self, file: str, tar: IO[bytes]) -> list[Sample]:
        if file not in self._indexes:
            samples, left_out = index_tar(tar, file)
            if left_out:
                log.info("%s: %d samples; left out: %d members that belong to none", file, len(samples), left_out)
            self._indexes[file] = samples
            while len(self._indexes) > 1 and sum(map(_members, self._indexes.values())) > _KEPT_MEMBERS:
                del self._indexes[next(iter(self._indexes))]  # a later pass reads those headers again
        return self._indexes[file]


def _members(samples: Sequence[Sample]) -> int:
    return sum(len(sample.parts) for sample in samples)


class _Samples:
    def __init__(self, tar: IO[bytes], samples: Sequence[Sample], schema: pa.Schema) -> None:
        self._tar = tar
        self._samples = samples
        self.schema = schema

    def sizes(self) -> Sequence[int]:
        return [len(self._samples)]

    def weights(self) -> Sequence[int]:
        return ()

    def cells(self, group: int, columns: Sequence[str], first: int) -> Iterator[NumberedCells]:
        kinds = {name: self.schema.field(name).type for name in columns}
        for n in range(first, len(self._samples)):
            sample = self._samples[n]
            yield n, {name: self._cell(sample, name, kind) for name, kind in kinds.items()}

    def _cell(self, sample: Sample, column: str, kind: pa.DataType) -> object:
        if column == "__key__":
            return sample.key
        part = _picture(sample) if column == "image" and column not in sample.parts else column
        if part in sample.parts:
            data = _read(self._tar, sample.parts[part])
            return _value(data, kind) if _suffix(part) in _TEXT | _NUMBERS else data
        part, _, field = column.partition("json.")
        return self._field(sample, f"{part}json", field, kind) if field else None

    def _field(self, sample: Sample, part: str, field: str, kind: pa.DataType) -> object:
        if part not in sample.parts:
            return None
        try:
            value = _fields(_read(self._tar, sample.parts[part])).get(field)
        except ValueError as error:
            return Unreadable(f"the sample's {part} is broken: {error}")
        if pat.is_string(kind) and value is not None and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        try:
            return pa.scalar(value, kind).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError) as error:
            return Unreadable(f"it is not {kind}, as in the first tar: {error}")


def _suffix(part: str) -> str:
    return part.rpartition(".")[2]


def _picture(sample: Sample) -> str:
    return next((part for part in sample.parts if f".{_suffix(part)}" in SUFFIXES), "")


def _read(tar: IO[bytes], span: Span) -> bytes:
    tar.seek(span.offset)
    data = tar.read(span.size)
    if len(data) != span.size:
        raise ValueError(f"it ends inside of a member, at byte {span.offset + len(data)}")
    return data


def _value(data: bytes, kind: pa.DataType) -> object:
    try:
        text = data.decode("utf-8")
        return int(text) if pat.is_integer(kind) else text
    except ValueError as error:
        return Unreadable(str(error))


def _fields(data: bytes) -> dict[str, Any]:
    """A JSON member's fields. Raises ``ValueError``."""
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it is no object of fields")
    return content


def _schema_of(tar: IO[bytes], samples: Sequence[Sample]) -> pa.Schema:
    kinds = {"__key__": pa.string(), "image": pa.binary()}
    for part in dict.fromkeys(part for sample in samples for part in sample.parts):
        suffix = _suffix(part)
        kinds[part] = pa.string() if suffix in _TEXT else pa.int64() if suffix in _NUMBERS else pa.binary()
    values: dict[str, list[object]] = {}
    for sample in samples[:_LOOKED_AT]:
        for part, span in sample.parts.items():
            if _suffix(part) == "json":
                try:
                    fields = _fields(_read(tar, span))
                except ValueError:
                    continue  # the row will say so
                for field, value in fields.items():
                    values.setdefault(f"{part}.{field}", []).append(value)
    return pa.schema({**kinds, **{name: _kind_of(found) for name, found in values.items() if name not in kinds}})


def _kind_of(values: Sequence[object]) -> pa.DataType:
    """What all ``values`` fit; text, for JSON, where they have nothing in common or fields of their own, which a later
    sample may have more of."""
    try:
        kind = pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError):
        return pa.string()
    return pa.string() if pat.is_null(kind) or "struct" in str(kind) else kind
