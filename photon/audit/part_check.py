"""One chunk's part held against its record, the plan and its quarantine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from photon.audit.findings import Finding
from photon.audit.positions import Positions, Stretch
from photon.data.part_file import batches, facts_of, opened
from photon.data.writer import FACTS, digest_of, part_name
from photon.errors import InputError
from photon.job.quarantine import FOLDER as QUARANTINE
from photon.plan.ledger import Record, part_facts
from photon.plan.plan import Plan

_COLUMNS = ("row_id", "status", "error_code", "source", "job_id")
_SET_ASIDE = ("row_id", "source", "status", "error_code", "job_id")


class PartCheck:
    """Checks the parts of the job in ``root``, in order. What their schemas have in common is the first one's."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self._root, self._plan = root, plan
        self._positions = Positions(plan)
        self._schema: pa.Schema | None = None
        self._first = ""

    def findings(self, record: Record) -> Iterator[Finding]:
        """What is wrong with the part of ``record``, as far as can be told."""
        path = self._root / "data" / part_name(record.chunk)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            yield Finding("missing", f"{path} is not there")
            return
        except OSError as error:
            yield Finding("damaged", f"{path} cannot be looked at: {error.strerror or error}")
            return
        if size != record.bytes:
            yield Finding("damaged", f"{path} has {size:,} bytes, and {record.bytes:,} were written")
            return
        try:
            if digest_of(path) != record.sha256:
                yield Finding("damaged", f"{path} does not have the digest that it was written with")
                return
            yield from self._inside(path, record)
        except (InputError, OSError, pa.ArrowException) as error:
            yield Finding("damaged", str(error) if isinstance(error, InputError) else f"{path}: {error}")

    def row_ids(self, record: Record) -> Sequence[str]:
        """Of a part; none of one that cannot be read."""
        try:
            with opened(self._root / "data" / part_name(record.chunk), ["row_id"]) as reader:
                return [row_id for batch in batches(reader) for row_id in batch.column(0).to_pylist()]
        except InputError:
            return []

    def _inside(self, path: Path, record: Record) -> Iterator[Finding]:
        with opened(path) as reader:
            schema = reader.schema
        lacking = [name for name in _COLUMNS if name not in schema.names]
        if lacking:
            yield Finding("schema", f"{path} lacks the column {lacking[0]}")
            return
        yield from self._schema_differs(path, schema)
        facts = part_facts(record.chunk, record.generation, record.making)
        if facts_of(schema) != facts:
            yield Finding("schema", f"{path} says of itself {facts_of(schema)}, and the ledger {facts}")
        with opened(path, _COLUMNS) as reader:
            table = pa.Table.from_batches(batches(reader), reader.schema).combine_chunks()
        yield from self._counts(path, table, record)
        yield from self._places(path, table, record)
        yield from self._set_aside(path, table, record)

    def _schema_differs(self, path: Path, schema: pa.Schema) -> Iterator[Finding]:
        """By types and by what ``datasets`` is told; the part's own facts aside."""
        metadata = {key: value for key, value in (schema.metadata or {}).items() if key != FACTS}
        bare = schema.with_metadata(metadata)
        if self._schema is None:
            self._schema, self._first = bare, path.name
        elif not bare.equals(self._schema, check_metadata=True):
            told = next((str(field) for field in bare if field not in self._schema), "the features of datasets")
            yield Finding("schema", f"{path} has other columns than {self._first}: {told}")

    def _counts(self, path: Path, table: pa.Table, record: Record) -> Iterator[Finding]:
        planned = self._plan.chunk(record.chunk).rows
        short = self._plan.is_endless and record.last and 0 < table.num_rows <= planned
        if table.num_rows != record.rows or not (table.num_rows == planned or short):
            yield Finding(
                "rows",
                f"{path} has {table.num_rows:,} rows, the plan gives it {planned:,} and the ledger {record.rows:,}",
            )
        ok = pc.sum(pc.equal(table["status"], "ok")).as_py() or 0
        codes = Counter(code for code in table["error_code"].to_pylist() if code is not None)
        if (ok, dict(codes)) != (record.ok, record.codes):
            yield Finding(
                "counts",
                f"{path} has {ok:,} rows that are ok and failures {dict(codes)}, the ledger says "
                f"{record.ok:,} and {record.codes}",
            )
        others = [name for name in pc.unique(table["job_id"]).to_pylist() if name != self._plan.job_id]
        if others:
            yield Finding("counts", f"{path} holds rows of another job, {others[0]}; this one is {self._plan.job_id}")

    def _places(self, path: Path, table: pa.Table, record: Record) -> Iterator[Finding]:
        chunk = self._plan.chunk(record.chunk)
        rows = min(table.num_rows, chunk.rows)
        source = table["source"]
        file, group, row = (pc.struct_field(source, name) for name in ("file", "row_group", "row"))
        start = 0
        for stretch in self._positions.of(chunk, rows):
            wanted = np.arange(stretch.first, stretch.first + stretch.rows)
            good = (
                _all_are(file.slice(start, stretch.rows), stretch.file)
                and _all_are(group.slice(start, stretch.rows), stretch.group)
                and np.array_equal(row.slice(start, stretch.rows).to_numpy(), wanted)
            )
            if not good:
                yield Finding("positions", _misplaced(path, source.slice(start, stretch.rows).to_pylist(), stretch))
                return
            start += stretch.rows

    def _set_aside(self, path: Path, table: pa.Table, record: Record) -> Iterator[Finding]:
        failed = table.filter(pc.not_equal(table["status"], "ok")).select(_SET_ASIDE).to_pylist()
        aside = self._root / QUARANTINE / part_name(record.chunk)
        if not aside.exists():
            if failed:
                yield Finding("quarantine", f"{aside} is not there, and {len(failed):,} rows of {path.name} failed")
            return
        try:
            with opened(aside, _SET_ASIDE) as reader:
                found = [row for batch in batches(reader) for row in batch.to_pylist()]
        except InputError as error:
            yield Finding("quarantine", f"{aside} cannot be read: {error}")
            return
        if found != failed:
            yield Finding("quarantine", f"{aside} does not hold the {len(failed):,} rows that failed in {path.name}")


def _all_are(column: pa.ChunkedArray, value: object) -> bool:
    return pc.all(pc.equal(column, value), skip_nulls=False).as_py() is True


def _misplaced(path: Path, sources: Sequence[dict[str, object]], stretch: Stretch) -> str:
    for n, found in enumerate(sources):
        wanted = {"file": stretch.file, "row_group": stretch.group, "row": stretch.first + n}
        if found != wanted:
            places = (":".join(map(str, (place or {}).values())) for place in (found, wanted))
            return "{} has the row {} where the plan has {}".format(path, *places)
    return f"{path} has rows at other places than the plan"
