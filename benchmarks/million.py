"""A million rows in ten thousand files through the null model: to plan, to run, to go on after a kill, to do nothing.

    python benchmarks/million.py [--files 10000] [--rows 100] [--chunk-rows auto]

Prints one JSON object: seconds of each, peak resident set in MB, sizes of plan and ledger. Rows are tiny pictures: what
is measured is the job around the model.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import PIL.Image
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-c", "from photon.cli import main; main()"]
MANIFEST = """\
version: 1
input: {{parquet: ["rows/*.parquet"]}}
model: {{path: photon://null}}
tasks: [{{name: things, type: detect, objects: [cup]}}]
output: {{dir: out, chunk_rows: {chunk_rows}}}
"""


def write_input(folder: Path, files: int, rows: int) -> None:
    """``files`` names of one file of ``rows`` rows."""
    picture = io.BytesIO()
    PIL.Image.new("RGB", (16, 12), "red").save(picture, "PNG")
    (folder / "rows").mkdir()
    first = folder / "rows" / "00000.parquet"
    pq.write_table(pa.table({"image": [picture.getvalue()] * rows}), first)
    for number in range(1, files):
        os.link(first, folder / "rows" / f"{number:05}.parquet")


def watched(folder: Path, *arguments: str, kill_at_parts: int | None = None) -> dict[str, Any]:
    """Runs a command to its end, or kills it when so many parts are there; seconds and peak resident set."""
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(folder / "log.txt", "a") as log:
        process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, stdout=log, stderr=log)
        while kill_at_parts is not None and process.poll() is None:
            time.sleep(0.2)
            if len(os.listdir(folder / "out/data")) >= kill_at_parts:
                process.send_signal(signal.SIGKILL)
                break
        _, status, usage = os.wait4(process.pid, 0)
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
        "ended": os.waitstatus_to_exitcode(status),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100, help="of each file")
    parser.add_argument("--chunk-rows", default="auto")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder, options.files, options.rows)
        (folder / "m.yaml").write_text(MANIFEST.format(chunk_rows=options.chunk_rows))
        told: dict[str, Any] = {"rows": options.files * options.rows, "files": options.files}
        told["plan"] = watched(folder, "plan", "m.yaml")
        parts = len(json.loads((folder / "out/plan.json").read_text())["spans"])
        (folder / "out/data").mkdir(exist_ok=True)
        told["run, killed halfway"] = watched(folder, "run", "m.yaml", kill_at_parts=parts // 2)
        before = len(os.listdir(folder / "out/data"))
        told["the rest"] = watched(folder, "run", "m.yaml")
        told["nothing to do"] = watched(folder, "run", "m.yaml")
        told["status"] = watched(folder, "status", "out")
        told["verify"] = watched(folder, "verify", "out")
        told["parts"] = {"at the kill": before, "in the end": len(os.listdir(folder / "out/data"))}
        told["mb"] = {
            "plan": round(sum(path.stat().st_size for path in (folder / "out").glob("*.json*")) / 1e6, 2),
            "ledger": round(sum(path.stat().st_size for path in (folder / "out/ledger").iterdir()) / 1e6, 2),
        }
        told["rows found"] = ds.dataset(folder / "out/data", format="ipc").count_rows()
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
