"""Where a row's truth is found: in the row itself, or in Parquet files, by a key or by the row's place in the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from photon.data.files import expand, is_remote, open_remote, reading
from photon.data.schema import features_of
from photon.errors import UsageError
from photon.evaluate.options import TruthOptions
from photon.evaluate.output import RunOutput
from photon.job.problems import nearest


class TruthSource(Protocol):
    """``where`` names the column with its file; ``needs`` are columns of the output that ``of`` looks at; ``feature``
    is what ``datasets`` left about the column."""

    where: str
    kind: pa.DataType
    feature: object
    needs: tuple[str, ...]
    columns: frozenset[str]

    def of(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The columns that go with an output row, truth among them; None where there is no such row."""
        ...


def open_truth(output: RunOutput, options: TruthOptions, prompts: Sequence[str]) -> TruthSource:
    """``prompts``: columns that prompts are filled from, wanted too where the output lacks them. Raises ``UsageError``
    for a column that is not there, ``InputError`` for a file that cannot be read."""
    if options.file is None:
        return _Kept(output, options.column)
    return _Joined(output, options, prompts)


class _Kept:
    """Truth that the run carried along."""

    def __init__(self, output: RunOutput, column: str) -> None:
        schema = output.schema
        if column not in schema.names:
            kept = [name for name in schema.names if name not in _OURS and name not in {t.name for t in output.tasks}]
            raise UsageError(
                f"{output.root} holds no column {column}; list it in the manifest's input.keep before the run, "
                f"or say where it is with --truth-file ({nearest(column, kept)})"
            )
        self.where = f"{output.root}: column {column}"
        self.kind = schema.field(column).type
        self.feature = features_of(schema).get(column)
        self.needs: tuple[str, ...] = (column,)
        self.columns = frozenset(schema.names)

    def of(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return row


class _Joined:
    """Truth of Parquet files, held in memory."""

    def __init__(self, output: RunOutput, options: TruthOptions, prompts: Sequence[str]) -> None:
        assert options.file is not None
        files = expand([options.file])
        opened = [_open(file) for file in files]
        schema = opened[0].schema_arrow
        if options.column not in schema.names:
            raise UsageError(f"{files[0]} has no column {options.column}; {nearest(options.column, schema.names)}")
        self.where = f"{options.file}: column {options.column}"
        self.kind = schema.field(options.column).type
        self.feature = features_of(schema).get(options.column)
        self.columns = frozenset([*schema.names, *output.schema.names])
        key, self.needs, self._key_of = _key(output, options, schema, files)
        extra = [name for name in prompts if name in schema.names and name not in output.schema.names]
        wanted = list(dict.fromkeys([options.column, *extra]))
        self._wanted = wanted
        self._rows: dict[Any, Mapping[str, Any]] = {}
        for file, parquet in zip(files, opened, strict=True):
            self._take(file, parquet, key)

    def of(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        found = self._rows.get(self._key_of(row))
        return None if found is None else {**row, **found}

    def _take(self, file: str, parquet: pq.ParquetFile, key: str | None) -> None:
        columns = list(dict.fromkeys([*self._wanted, *([key] if key else [])]))
        for group in range(parquet.num_row_groups):
            with reading(file):
                cells = parquet.read_row_group(group, columns=columns).to_pylist()
            for number, row in enumerate(cells):
                name = (os.path.abspath(file), group, number) if key is None else _text(row[key])
                if name is None:
                    continue
                if name in self._rows:
                    raise UsageError(f"{file}: column {key} holds {name!r} twice; keep one row of it")
                self._rows[name] = {column: row[column] for column in self._wanted}


_OURS = ("row_id", "status", "error_code", "error_message", "source", "image", "job_id")
_KeyOf = Callable[[Mapping[str, Any]], Any]


def _key(
    output: RunOutput, options: TruthOptions, schema: pa.Schema, files: Sequence[str]
) -> tuple[str | None, tuple[str, ...], _KeyOf]:
    """The column of the file that names a row, None for the row's position, and how an output row tells it."""
    on = options.on
    if on is None and "row_id" not in schema.names:
        first = next(output.rows(["source"]), None)
        mine = {os.path.abspath(file) for file in files}
        if first is not None and _position(first)[0] in mine:
            return None, ("source",), _position
        raise UsageError(
            f"{files[0]} has no column row_id and is not the run's input; "
            "say with --on which of its columns holds the rows' ids"
        )
    on = on or "row_id"
    if on not in schema.names:
        raise UsageError(f"{files[0]} has no column {on}; {nearest(on, schema.names)}")
    if on in output.schema.names:
        return on, (on,), lambda row: _text(row[on])
    if on == output.id_column:
        return on, ("row_id",), lambda row: _text(row["row_id"])
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


def _open(file: str) -> pq.ParquetFile:
    with reading(file):
        return pq.ParquetFile(open_remote(file) if is_remote(file) else file)
