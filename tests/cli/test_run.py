"""Options of ``run`` that mean nothing alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from photon.cli.app import app


@pytest.mark.parametrize("further", [[], ["--dry-run"]])
def test_a_code_without_rows_to_retry(workplace: Path, further: list[str]) -> None:
    done = CliRunner().invoke(app, ["run", "m.yaml", "--code", "IMAGE_MISSING", *further])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--code says which of the failed rows to ask again; give --retry-failed with it" in done.stderr
