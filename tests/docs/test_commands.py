"""What the pages tell people to type is typed: every shell command as it stands, every Python snippet, page by page."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import clone
from tests.docs.pages import NAMES, ROOT, blocks, text_of
from tests.docs.shell import commands_in, run

#: Pages whose shell commands have a test of their own, and where that is.
ELSEWHERE = {
    "docs/quickstart.md": "tests/docs/test_quickstart.py",
    "docs/slurm.md": "tests/slurm/test_real_slurm.py",
}
#: The same for snippets of Python.
SNIPPETS_ELSEWHERE = {
    "docs/jobs.md": "tests/job/test_jobs_doc.py",
    "docs/output.md": "tests/docs/test_output.py",
    "docs/profiling.md": "tests/bench/test_profiling_guide.py",
}
#: What no test runs here, and why.
NOT_RUN = {
    "make demo": "it installs: tests/docs/clone.py, which CI calls, runs it",
    "make test": "that is what runs this",
    ". .venv/bin/activate": "these tests run inside of it: tests/docs/clone.py",
} | dict.fromkeys(
    (
        "sudo cp jobs/systemd/photon-batch-nightly.* /etc/systemd/system/",
        "systemd-analyze verify /etc/systemd/system/photon-batch-nightly.*",
        "sudo systemctl daemon-reload",
        "sudo systemctl enable --now photon-batch-nightly.timer",
        "systemctl list-timers photon-batch-nightly.timer",
        "journalctl --unit photon-batch-nightly --since yesterday",
    ),
    "they change the machine: tests/jobs/test_schedules.py has systemd check the units, and runs what they run",
)
NOT_EXECUTED = {
    "import fiftyone": "it needs a MongoDB: tests/export/test_readers.py holds the export against its documented form"
}
#: Stands in for the one that would change its user's table.
CRONTAB = """\
#!/bin/sh
case $1 in -l) cat "$CRONTAB_FILE" ;; -) cat > "$CRONTAB_FILE.new" && mv "$CRONTAB_FILE.new" "$CRONTAB_FILE" ;; esac
"""
#: Measurements, cut short: what is added to a command that begins so.
SHORTER = {
    "photon-batch bench decode": "--tokens 8 --repeats 1",
    "python benchmarks/stages.py": "--rows 64 --repeats 1",
    "python benchmarks/engine.py": "--images 1 --questions 1 --batch 1 --depth 2",
    "python benchmarks/data.py": "--repeats 1",
}
#: A file or folder that a command says it makes.
MADE = re.compile(r"(?:--(?:out|json|picture|plot|trace)|>) ([\w./-]*\w)")
SHELL = [name for name in NAMES if blocks(text_of(name), "sh") and name not in ELSEWHERE]
RUN = [name for name in SHELL if name != "docs/schedules.md"]  # which has a test of its own below
PYTHON = [name for name in NAMES if blocks(text_of(name), "python") and name not in SNIPPETS_ELSEWHERE]


def commands(page: str) -> Iterator[str]:
    return (command for command in commands_in(text_of(page)) if command not in NOT_RUN)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone after the demo, as far as pages speak of it: pictures in ``photos``, the manifest that ``init`` writes
    for them, and what a run of either left. Of the demo's 200 scenes, 24."""
    folder = tmp_path_factory.mktemp("place") / "clone"
    clone.copy(folder)
    clone.put_photos(folder)
    shutil.copyfile(sorted((folder / "photos").iterdir())[0], folder / "photo.jpg")
    for command in (
        "photon-batch run manifests/demo.yaml --limit 24",
        "photon-batch init photos --out cars.yaml",
        "photon-batch run cars.yaml",
    ):
        run(command, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_commands(page: str, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(place, folder)
    if page == "README.md":  # which begins before the first run
        shutil.rmtree(folder / "outputs/cars")
        (folder / "cars.yaml").unlink()
    for command in commands(page):
        more = next((extra for start, extra in SHORTER.items() if command.startswith(start)), "")
        run(f"{command} {more}", folder, PYTHONPATH=str(folder))
        for made in MADE.findall(command):
            assert (folder / made).exists(), command


@pytest.mark.slow
def test_a_line_more_for_cron(place: Path, tmp_path: Path) -> None:
    table, program = tmp_path / "table", tmp_path / "bin/crontab"
    program.parent.mkdir()
    program.write_text(CRONTAB)
    program.chmod(0o755)
    table.write_text("0 1 * * * true\n")
    (command,) = commands("docs/schedules.md")
    run(f"PATH={program.parent}:$PATH; {command}", place, CRONTAB_FILE=str(table))
    assert table.read_text() == "0 1 * * * true\n" + (ROOT / "jobs/cron/nightly.cron").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON)
def test_snippets(page: str, place: Path, tmp_path: Path) -> None:
    """One after the other in one process, after the page's exports."""
    folder = tmp_path / "here"
    shutil.copytree(place, folder)
    for command in commands(page):
        if command.startswith("photon-batch export"):
            run(command, folder)
    code = [block.text for block in blocks(text_of(page), "python") if not block.text.startswith(tuple(NOT_EXECUTED))]
    (folder / "snippets.py").write_text("\n".join(code))
    run(f"{sys.executable} snippets.py", folder, HF_DATASETS_CACHE=str(tmp_path / "cache"))


def test_the_transcript_of_a_clone_is_of_the_readmes_commands() -> None:
    kept = clone.TRANSCRIPT.read_text(encoding="utf-8").splitlines()
    assert [line[2:] for line in kept if line.startswith("$ ")] == list(clone.commands())
    assert kept[-1].startswith("wrote outputs/cars/report.html: 12 rows, 12 of them shown")


def test_every_page_with_commands_is_run_somewhere() -> None:
    for page, test in (ELSEWHERE | SNIPPETS_ELSEWHERE).items():
        assert os.path.basename(page) in (ROOT / test).read_text(encoding="utf-8"), (page, test)
    everything = {command for page in SHELL for command in commands_in(text_of(page))}
    assert set(NOT_RUN) <= everything
    for why in (*NOT_RUN.values(), *NOT_EXECUTED.values()):
        assert all((ROOT / test).exists() for test in re.findall(r"tests/[\w/.]+\w", why)), why
    for start in SHORTER:
        assert any(command.startswith(start) for command in everything), start
    for start in NOT_EXECUTED:
        assert any(block.text.startswith(start) for page in PYTHON for block in blocks(text_of(page), "python"))


@pytest.mark.parametrize("page", NAMES)
def test_what_is_to_be_typed_says_so(page: str) -> None:
    """In a block of no language nothing would run: such are for what is printed."""
    for block in blocks(text_of(page), ""):
        starts = {line.partition(" ")[0] for line in block.text.splitlines()}
        assert not starts & {"photon-batch", "make", "python", "pip"}
