"""A long run: every row once, and memory that stays flat."""

from __future__ import annotations

import io
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from photon.job.measure import CHUNK_ROWS

ROOT = Path(__file__).parents[2]
ROWS = 20_000
CORRUPT_EVERY = 250
BYTES_PER_ROW = 1_000  # 1 MB for 1,000 rows


def pictures(count: int) -> list[bytes]:
    """Small noisy JPEGs and PNGs, no two of one size in bytes. Encoded they take 1.5 to 10 kB: if those of the rows
    were held on to, it would show."""
    dice, made = random.Random(0), []
    for n in range(count):
        size = dice.randrange(24, 64), dice.randrange(24, 64)
        file = io.BytesIO()
        picture = PIL.Image.frombytes("RGB", size, dice.randbytes(size[0] * size[1] * 3))
        picture.save(file, "JPEG" if n % 2 else "PNG")
        made.append(file.getvalue())
    return made


def write_rows(path: Path) -> None:
    """``ROWS`` rows in row groups of a thousand, the bytes of each stored anew."""
    made = pictures(101)
    schema = pa.schema({"image": pa.binary(), "name": pa.string(), "subject": pa.string()})
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, ROWS, 1000):
            rows = range(first, first + 1000)
            images = [b"broken %d" % n if n % CORRUPT_EVERY == 77 else made[n % len(made)] for n in rows]
            names, subjects = [f"row{n}" for n in rows], ["cat"] * len(rows)
            writer.write_table(pa.table({"image": images, "name": names, "subject": subjects}, schema))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunk_rows", "settled"),
    [(500, 2_000), (CHUNK_ROWS, 2 * CHUNK_ROWS)],  # by then one chunk is being written while the next is gathered
)
def test_memory_is_flat_over_many_rows(manifest_file: Callable[..., Path], chunk_rows: int, settled: int) -> None:
    """It grows by at most 1 MB for 1,000 rows."""
    write_rows(Path("rows.parquet"))
    folder = manifest_file(output=f"{{dir: out, chunk_rows: {chunk_rows}}}", errors="{max_failure_rate: 0.5}").parent
    command = [sys.executable, "-m", "tests.job.soak", str(folder)]
    made = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert (made["rows"], made["failed"], made["parts"]) == (ROWS, ROWS // CORRUPT_EVERY, ROWS // chunk_rows)
    ids = ds.dataset("out/data", format="ipc").to_table(columns=["row_id"])["row_id"].to_pylist()
    assert ids == [f"row{n}" for n in range(ROWS)]

    # The resident set breathes with the chunk: rows gather, and the writer, on a thread of its own, holds the chunk
    # before for as long as it takes. So we compare medians over a whole chunk each, the first one and the last.
    resident = {int(rows): size for rows, size in made["resident"].items()}
    first = statistics.median(size for rows, size in resident.items() if settled <= rows < settled + chunk_rows)
    last = statistics.median(size for rows, size in resident.items() if ROWS - chunk_rows < rows)
    allowed = BYTES_PER_ROW * (ROWS - settled - chunk_rows)  # from the middle of the one to the middle of the other
    grown = (last - first) / 1e6
    assert last - first <= allowed, f"{grown:.1f} MB, by row: {dict(list(resident.items())[9::10])}"
