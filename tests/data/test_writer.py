"""Part files are whole or absent, bounded in batch size, and the same for the same rows."""

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pyarrow as pa
import pytest

from photon.data import writer as module
from photon.data.schema import TaskColumn, result_schema
from photon.data.writer import Part, PartWriter
from photon.errors import OutputError

SCHEMA = result_schema([TaskColumn("cap", "text")], [pa.field("blob", pa.large_binary())])


def row(n: int, blob: bytes | None = None) -> dict[str, object]:
    return {"row_id": str(n), "status": "ok", "blob": blob, "cap": {"status": "ok", "text": f"text {n}"}, "job_id": "j"}


def test_a_part(tmp_path):
    part = PartWriter(tmp_path / "deep" / "out", SCHEMA).write(7, [row(n) for n in range(5)])
    path = tmp_path / "deep" / "out" / "part-000007.arrow"
    assert part == Part(path, 5, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    assert os.listdir(path.parent) == [path.name]
    with pa.ipc.open_file(path) as reader:
        assert reader.schema.equals(SCHEMA, check_metadata=True)
        assert reader.read_all().column("row_id").to_pylist() == list("01234")
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("ipc", ["file", "stream"])
def test_the_same_rows_give_the_same_bytes(ipc, tmp_path):
    rows = [row(n, os.urandom(100)) for n in range(50)]
    parts = [PartWriter(tmp_path / name, SCHEMA, ipc=ipc).write(0, rows).path.read_bytes() for name in "ab"]
    assert parts[0] == parts[1]
    assert parts[0].startswith(b"ARROW1") == (ipc == "file")


def test_no_rows(tmp_path):
    part = PartWriter(tmp_path, SCHEMA).write(0, [])
    with pa.ipc.open_file(part.path) as reader:
        assert (part.rows, reader.read_all().num_rows) == (0, 0)


def test_the_first_part_imports_nothing(tmp_path):
    """pyarrow imports pandas when it first converts Python values: 49 MB, and a second in which the engine waits."""
    script = """
        import sys
        from photon.data.schema import TaskColumn, result_schema
        from photon.data.writer import PartWriter

        writer = PartWriter(sys.argv[1], result_schema([TaskColumn("cap", "text")], []))
        before = set(sys.modules)
        writer.write(0, [{"row_id": "0", "cap": {"text": "a dog"}}])
        print(*set(sys.modules) - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_zstd(tmp_path):
    part = PartWriter(tmp_path, SCHEMA).write(0, [row(n, bytes(10_000)) for n in range(100)])
    assert part.bytes < 50_000


def test_batches_are_cut_by_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_BYTES", 10_000)
    sizes = [100] * 30 + [50_000] + [4000] * 5
    part = PartWriter(tmp_path, SCHEMA).write(0, [row(n, bytes(size)) for n, size in enumerate(sizes)])
    with pa.ipc.open_file(part.path) as reader:
        batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
    assert [len(v) for b in batches for v in b.column("blob").to_pylist()] == sizes
    assert all(batch.nbytes < 14_000 for batch in batches if batch.num_rows > 1)
    assert 5 <= len(batches) <= 8


def test_rows_that_do_not_fit(tmp_path):
    writer = PartWriter(tmp_path, SCHEMA)
    with pytest.raises(ValueError, match="row 1 has columns that the schema lacks: captoin"):
        writer.write(0, [row(0), {"row_id": "1", "captoin": None}])
    with pytest.raises((ValueError, TypeError)):
        writer.write(0, [row(0), {"row_id": 5}])
    with pytest.raises(ValueError, match="chunk"):
        writer.write(-1, [])
    with pytest.raises(ValueError, match="ipc"):
        PartWriter(tmp_path, SCHEMA, ipc="feather")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("call", "number", "message"),
    [
        ("fsync", errno.ENOSPC, "the disk is full"),
        ("replace", errno.EACCES, "no permission"),
        ("replace", errno.EIO, "check the output folder"),
    ],
)
def test_a_refusal_leaves_nothing_and_says_what_to_do(tmp_path, monkeypatch, call, number, message):
    def refuse(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OutputError, match=f"part-000001.arrow: {os.strerror(number)}; {message}"):
        PartWriter(tmp_path, SCHEMA).write(1, [row(0)])
    assert os.listdir(tmp_path) == []


def test_a_part_whose_name_may_not_last_is_taken_back(tmp_path, monkeypatch):
    fsync, answers = os.fsync, iter([0, errno.EIO, 0, errno.EINVAL])

    def fail_every_second(handle: int) -> None:
        if number := next(answers):
            raise OSError(number, os.strerror(number))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail_every_second)
    writer = PartWriter(tmp_path, SCHEMA)
    with pytest.raises(OutputError):
        writer.write(1, [row(0)])
    assert os.listdir(tmp_path) == []
    writer.write(1, [row(0)])  # a file system that cannot sync folders: as good as it gets
    assert os.listdir(tmp_path) == ["part-000001.arrow"]


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        PartWriter(tmp_path / "file" / "out", SCHEMA)


def test_the_system_cuts_a_write_short(tmp_path):
    """A real refusal in the middle of a batch: the file size limit of the process."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(OutputError, match="write smaller chunks"):
            PartWriter(tmp_path, SCHEMA).write(0, [row(n, os.urandom(1000)) for n in range(1000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []


def test_a_killed_writer_leaves_no_visible_part(tmp_path):
    """Killed while it writes part after part: those that are there are whole."""
    script = f"""
        import os, pyarrow as pa
        from pathlib import Path
        from photon.data.writer import PartWriter

        writer = PartWriter(Path({str(tmp_path)!r}), pa.schema({{"blob": pa.binary()}}))
        rows = [{{"blob": os.urandom(5000)}} for _ in range(400)]
        for chunk in range(1000):
            writer.write(chunk, rows)
    """
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("part-*")) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.02)
        process.kill()
        process.wait()
        visible = sorted(path for path in tmp_path.iterdir() if not path.name.startswith("."))
        assert visible
        for path in visible:
            with pa.ipc.open_file(path) as reader:
                assert reader.read_all().num_rows == 400
        assert all(path.suffix == ".tmp" for path in set(tmp_path.iterdir()) - set(visible))
        for path in tmp_path.iterdir():
            path.unlink()


def test_neither_input_nor_output_needs_torch_or_datasets():
    modules = ["data.parquet", "data.arrow", "data.hub", "data.schema", "data.writer", "data.clip", "images.decode"]
    script = f"import sys, {', '.join('photon.' + name for name in modules)}\n"
    script += "print(sorted({'torch', 'datasets', 'huggingface_hub', 'fsspec'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
