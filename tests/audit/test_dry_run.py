"""A dry run: it says what a run would ask and where it would fail, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from photon.audit.dry_run import dry_run
from photon.cli import app
from photon.errors import InputError, OutputError, UsageError
from photon.job.run import run
from photon.manifest.load import load_manifest
from tests.job.fakes import ShufflingEngine
from tests.job.inputs import png, write_parquet

Write = Callable[..., Path]


def everything() -> dict[str, int]:
    """Every file below here, with the time of its last change."""
    return {
        os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_mtime_ns
        for folder, _, names in os.walk(".")
        for name in names
    }


def test_it_says_what_a_run_would(manifest_file: Write) -> None:
    """The same rows fail, with the same codes and messages; the same requests are made."""
    images = [png(), b"no picture", png(), None, png()[:60], png(), b""]
    subjects = ["cat", "dog", None, "cat", "cat", "bird", "cat"]
    write_parquet(Path("rows.parquet"), images, subject=subjects)
    manifest = load_manifest(manifest_file(errors="{max_failure_rate: 0.8}"))
    before = everything()
    tried = dry_run(manifest)
    assert everything() == before, "nothing is written"
    assert (tried.rows, tried.sampled, tried.ok, tried.failed, tried.exit_code) == (7, 7, 2, 5, 0)
    assert tried.prompts == {
        "things": ("cat", "dog"),
        "spots": ("cat", "dog", "bird"),
        "cap": (),
        "ask": ("Is there a cat?", "Is there a dog?", "Is there a bird?"),
    }
    done = run(manifest)
    assert (tried.ok, tried.failed, tried.requests) == (done.ok, done.failed, done.requests)
    theirs = {code.code: (code.count, code.row_id) for code in done.codes}
    assert {code.code: (code.count, code.row_id) for code in tried.codes} == theirs
    assert {code.code for code in tried.codes} == {
        *("IMAGE_UNIDENTIFIED", "PROMPT_NULL", "IMAGE_MISSING", "IMAGE_TRUNCATED", "IMAGE_EMPTY")
    }


def test_text(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(), None])
    tried = dry_run(load_manifest(manifest_file()))
    assert tried.text().splitlines() == [
        "dry run: 2 of 2 rows tried, 5 requests filled: 1 ok, 1 failed (over the budget of 1.00%); nothing was written",
        "  IMAGE_MISSING       1  first: row row1: the image cell is null",
        "things: cat · dog",
        "spots: cat",
        "cap: asks without a prompt",
        "ask: Is there a cat?",
    ]


def test_rows_from_all_over(manifest_file: Write) -> None:
    """Of many rows a part is tried, up to the last chunk: a column that is empty in the second half is found out."""
    subjects = ["cat"] * 400 + [None] * 600
    write_parquet(Path("rows.parquet"), [png()] * 1000, subject=subjects)
    manifest = load_manifest(manifest_file(output="{dir: out}"))
    tried = dry_run(manifest)
    assert tried.sampled == 120
    (code,) = tried.codes
    assert (code.code, code.count) == ("PROMPT_NULL", 72)
    assert tried.exit_code == 3
    tried = dry_run(manifest, limit=300)
    assert (tried.rows, tried.sampled, tried.failed, tried.exit_code) == (300, 120, 0, 0)


def test_what_stands_in_the_way_of_a_run_does_so_here(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 5)
    manifest = load_manifest(manifest_file())
    run(manifest, engine=ShufflingEngine())
    before = everything()
    assert dry_run(manifest).ok == 5
    with pytest.raises(UsageError, match="a plan of 5 rows, and 2 are asked for"):
        dry_run(manifest, limit=2)
    assert dry_run(manifest, limit=2, fresh=True).rows == 2
    assert everything() == before
    Path("out/mine").write_text("x")
    with pytest.raises(OutputError, match="holds a file that is not ours"):
        dry_run(manifest)
    with pytest.raises(UsageError, match="has no column who"):
        dry_run(load_manifest(manifest_file(output="{dir: other}", input="{parquet: rows.parquet, id: who}")))
    Path("rows.parquet").write_bytes(b"PAR1 nothing more")
    with pytest.raises(InputError, match=r"cannot read rows\.parquet"):
        dry_run(load_manifest(manifest_file(output="{dir: other}")))


def test_no_model_is_loaded(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png()] * 3)
    path = manifest_file(model="{path: photon://shapes}")
    code = "import sys; from photon.manifest.load import load_manifest; from photon.audit.dry_run import dry_run; "
    code += f"print(dry_run(load_manifest({str(path)!r})).ok, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3 False\n"


def test_command_line(manifest_file: Write) -> None:
    write_parquet(Path("rows.parquet"), [png(), None])
    manifest_file()
    done = CliRunner().invoke(app, ["run", "m.yaml", "--dry-run", "--json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["exit_code"], told["dry_run"], told["sampled"]) == (3, 3, True, 2)
    assert done.stderr.startswith("dry run: 2 of 2 rows tried")
    done = CliRunner().invoke(app, ["run", "m.yaml", "--dry-run", "--quiet", "--limit", "1"])
    assert (done.exit_code, done.output) == (0, "")
    assert not Path("out").exists()
