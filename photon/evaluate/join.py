"""Where a row's truth is found: in the row itself, or in Parquet files, by a key or by the row's place in the input.

What a prompt is filled from comes along, apart from the truth: columns of the input, never those that a result has of
its own, be they named alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from photon.data.files import expand, is_remote, open_remote, reading
from photon.data.schema import features_of
from photon.errors import UsageError
from photon.evaluate.options import TruthOptions
from photon.evaluate.shape import class_names
from photon.job.output import RunOutput
from photon.manifest.problems import nearest


class RowTruth(NamedTuple):
    """``cell`` is the truth as it stands, ``columns`` what the row's prompts were filled from."""

    cell: Any
    columns: Mapping[str, Any]


class TruthSource(Protocol):
    """``where`` names the column with its file; ``needs`` are columns of the output that ``of`` looks at; ``feature``
    is what ``datasets`` left about the column. ``columns`` can fill prompts."""

    where: str
    kind: pa.DataType
    feature: object
    needs: tuple[str, ...]
    columns: frozenset[str]

    def of(self, row: Mapping[str, Any]) -> RowTruth | None:
        """What goes with an output row; None where there is no such row."""
        ...


def open_truth(output: RunOutput, options: TruthOptions, prompts: Sequence[str]) -> TruthSource:
    """``prompts``: columns that prompts are filled from, taken from the output where the run kept them. Raises
    ``UsageError`` for a column that is not there, ``InputError`` for a file that cannot be read."""
    if options.file is None:
        return _Kept(output, options.column, prompts)
    return _Joined(output, options, prompts)


class _Kept:
    """Truth that the run carried along."""

    def __init__(self, output: RunOutput, column: str, prompts: Sequence[str]) -> None:
        schema = output.schema
        if column not in schema.names:
            raise UsageError(
                f"{output.root} holds no column {column}; list it in the manifest's input.keep before the run, "
                f"or say where it is with --truth-file ({nearest(column, output.kept)})"
            )
        self.where = f"{output.root}: column {column}"
        self.kind = schema.field(column).type
        self.feature = features_of(schema).get(column)
        self.columns = frozenset(output.kept)
        self._column, self._prompts = column, [name for name in prompts if name in self.columns]
        self.needs: tuple[str, ...] = (column, *self._prompts)

    def of(self, row: Mapping[str, Any]) -> RowTruth | None:
        return RowTruth(row[self._column], {name: row[name] for name in self._prompts})


class _Joined:
    """Truth of Parquet files, held in memory."""

    def __init__(self, output: RunOutput, options: TruthOptions, prompts: Sequence[str]) -> None:
        assert options.file is not None
        files = expand([options.file])
        schemas = {file: _schema(file) for file in files}
        theirs = {name for schema in schemas.values() for name in schema.names}
        key = options.on or ("row_id" if "row_id" in schemas[files[0]].names else None)
        self._prompts = [name for name in prompts if name in output.kept]
        self._extra = [name for name in prompts if name not in output.kept and name in theirs]
        self._column = options.column
        self._wanted = list(dict.fromkeys([options.column, *([key] if key else []), *self._extra]))
        for file, schema in schemas.items():
            _check(file, schema, self._wanted)
        self.where = f"{options.file}: column {options.column}"
        self.kind, self.feature = _one_type(schemas, options.column)
        self.columns = frozenset([*output.kept, *theirs])
        needed, self._key_of = _key(output, key, files)
        self.needs: tuple[str, ...] = (needed, *self._prompts)
        self._rows: dict[Any, RowTruth] = {}
        for file in files:
            self._take(file, key)

    def of(self, row: Mapping[str, Any]) -> RowTruth | None:
        found = self._rows.get(self._key_of(row))
        if found is None:
            return None
        return RowTruth(found.cell, {**{name: row[name] for name in self._prompts}, **found.columns})

    def _take(self, file: str, key: str | None) -> None:
        with _opened(file) as parquet:
            for group in range(parquet.num_row_groups):
                with reading(file):
                    cells = parquet.read_row_group(group, columns=self._wanted).to_pylist()
                for number, row in enumerate(cells):
                    name = (os.path.abspath(file), group, number) if key is None else _text(row[key])
                    if name is None:
                        continue
                    if name in self._rows:
                        raise UsageError(f"{file}: column {key} holds {name!r} twice; keep one row of it")
                    self._rows[name] = RowTruth(row[self._column], {column: row[column] for column in self._extra})


def _check(file: str, schema: pa.Schema, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in schema.names:
            raise UsageError(f"{file} has no column {name}; {nearest(name, schema.names)}")
        if schema.names.count(name) > 1:
            raise UsageError(f"{file} has more than one column {name}; rename one of them")


def _one_type(schemas: Mapping[str, pa.Schema], column: str) -> tuple[pa.DataType, object]:
    """The column's type in all files, and what ``datasets`` left about it. Types may differ where values are read
    alike: in width, in fields that one lacks, and where all are null or every list is empty."""
    told = {file: schema for file, schema in schemas.items() if not pat.is_null(schema.field(column).type)}
    (first, schema), *others = (told or schemas).items()
    kind, feature = schema.field(column).type, features_of(schema).get(column)
    for file, other in others:
        mine, theirs = (pa.schema([pa.field(column, k)]) for k in (kind, other.field(column).type))
        try:
            kind = pa.unify_schemas([mine, theirs], promote_options="permissive").field(column).type
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            told_types = f"{other.field(column).type}, but {schema.field(column).type} in {first}"
            raise UsageError(f"{file}: column {column} is {told_types}; make them one type") from None
        if class_names(features_of(other).get(column)) != class_names(feature):
            raise UsageError(f"{file}: column {column} has other class names than in {first}; write both with the same")
    return kind, feature


_KeyOf = Callable[[Mapping[str, Any]], Any]


def _key(output: RunOutput, on: str | None, files: Sequence[str]) -> tuple[str, _KeyOf]:
    """The column of the output that tells which row of the files is meant, by their column ``on`` or, with None, by
    its position, and how it tells."""
    if on is None:
        mine = {os.path.abspath(file) for file in files}
        if any(_position(row)[0] in mine for row in output.rows(["source"])):
            return "source", _position
        raise UsageError(
            f"{files[0]} has no column row_id, and no row of {output.root} was read from it; "
            "say with --on which of its columns holds the rows' ids"
        )
    if on == "row_id" or on in output.kept:
        return on, lambda row: _text(row[on])
    if on == output.id_column:
        return "row_id", lambda row: _text(row["row_id"])
    raise UsageError(
        f"{output.root} holds no column {on}, and its row ids do not come from one; "
        "give --on a column that input.id or input.keep of the manifest named"
    )


def _position(row: Mapping[str, Any]) -> tuple[str, int, int]:
    source = row["source"]
    return os.path.abspath(source["file"]), source["row_group"], source["row"]


def _text(value: Any) -> str | None:
    """Ids are text in the output, whatever they were in the input."""
    return None if value is None else str(value)


def _schema(file: str) -> pa.Schema:
    with _opened(file) as parquet:
        return parquet.schema_arrow


@contextmanager
def _opened(file: str) -> Iterator[pq.ParquetFile]:
    """Closed again, since there may be more files than a process can hold open."""
    with ExitStack() as stack:
        with reading(file):
            source = stack.enter_context(open_remote(file)) if is_remote(file) else file
            parquet = stack.enter_context(pq.ParquetFile(source))
        yield parquet
