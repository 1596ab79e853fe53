"""Writes a first manifest for some data, with comments that say what to change: it runs as it is."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from photon.errors import OutputError, UsageError
from photon.job.draft.find import Found, find_data
from photon.job.draft.look import Looked, look_at
from photon.job.folder import lies_in
from photon.job.sources import open_source
from photon.manifest.document import Document
from photon.manifest.load import parse_manifest
from photon.manifest.spelling import spelt
from photon.manifest.variables import fill_variables

#: Columns that are kept without being asked; more would make results as wide as the input.
_MOST_KEPT = 12
_COMMENT = 40


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest that was written to ``path``, and what was seen of the data."""

    path: Path
    looked: Looked

    def text(self) -> str:
        """What a person is told."""
        seen = self.looked
        rows = "an unknown number of" if seen.rows is None else f"{seen.rows:,}"
        named = f"ids in {seen.id}" if seen.id else "no column of ids"
        return (
            f"wrote {self.path}: {rows} rows, images in {seen.image}, {named}\n"
            f"look it over, then: photon-batch run {shlex.quote(str(self.path))} --limit 20"
        )


def write_draft(names: Sequence[str], out: Path | None = None) -> Draft:
    """Looks at the data that ``names`` name and writes ``out``, by default called after the data, in this folder.

    Raises ``UsageError`` where ``out`` is there already or the data is nothing we know, ``OutputError`` where ``out``
    cannot be written.
    """
    found = find_data(names)
    path = out or Path(f"{found.stem}.yaml")
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already; choose another name with --out, or remove it")
    looked = look_at(found)
    text = draft(found, looked, path)
    document = Document.parse(text, str(path))
    fill_variables(document, {})
    open_source(parse_manifest(document))  # what we write has to be in order
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}; choose another --out") from error
    return Draft(path, looked)


def draft(found: Found, looked: Looked, path: Path) -> str:
    """The manifest's text; ``path`` is what its comments call it."""
    command = f"#     photon-batch run {shlex.quote(str(path))}"
    head = [
        "# Made by photon-batch init: look it over. A few rows, then all of them:",
        f"{command} --limit 20",
        command,
        "# Every other key: docs/manifest.md, or manifests/full.yaml.",
    ]
    blocks = (head, ["version: 1"], _input(found, looked), _MODEL, _tasks(looked), _output(found, path.stem))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _input(found: Found, looked: Looked) -> Iterator[str]:
    yield "input:"
    patterns = spelt(found.patterns[0] if len(found.patterns) == 1 else found.patterns)
    rows = "rows" if looked.rows is None else f"{looked.rows:,} rows"
    yield _line(f"  {found.kind}: {patterns}", f"{rows}; relative to the folder that you start from")
    yield _line(f"  image: {spelt(looked.image)}", f"the column with the images: {looked.image_type}")
    if looked.fetch:
        yield _line("  urls: {fetch: true}", "it holds URLs, which are downloaded; false makes them rows that fail")
    if looked.id is not None:
        yield _line(f"  id: {spelt(looked.id)}", f"names a row in the results; no two of {looked.sampled:,} are alike")
    else:
        yield _line("  id: null", "a column that names a row in the results; null is its place, file:row_group:row")
    kept, left = looked.keep[:_MOST_KEPT], looked.keep[_MOST_KEPT:]
    yield _line(f"  keep: {spelt(kept)}", "columns that are carried along into the results")
    if left:
        yield f"  # also there: {', '.join(map(spelt, left))}"


_MODEL = (
    "model:",
    "  path: photon://shapes                 # in the box: knows drawn shapes, digits and colours, but no photos",
    "  # For photos, Moondream 2: about 3.9 GB from the model hub, or a folder with the same files.",
    "  # path: vikhyatk/moondream2",
    "  # revision: 2025-06-21",
    "  # tokenizer: moondream/starmie-v1",
    "  # tokenizer_revision: main",
)


def _tasks(looked: Looked) -> Iterator[str]:
    yield _line("tasks:", "each is asked of every image and becomes one column of the results")
    yield f"  - name: {_free('things', looked)}"
    yield _line("    type: detect", "boxes; point gives points")
    yield _line("    objects: [circle, square, digit]", 'what to look for; a label like "012" needs quotes')
    yield f"  - name: {_free('caption', looked)}"
    yield _line("    type: caption", "a description")
    yield "    length: short"
    column = looked.prompts[0] if looked.prompts else None
    about = "there a {" + column + "}" if column else "it day or night"
    filled = f"{{column}} is filled from each row: {', '.join(looked.prompts[:5])}" if column else "of your own"
    yield f"  # - name: {_free('check', looked)}"
    yield _line("  #   type: query", "an answer to a question")
    yield _line(f"  #   question: {spelt(f'Is {about}?')}", filled)


def _output(found: Found, stem: str) -> Iterator[str]:
    yield "output:"
    yield _line(f"  dir: {spelt(_output_dir(found, stem))}", "data/part-*.arrow and run.json; a folder of its own")


def _output_dir(found: Found, stem: str) -> str:
    """outputs/STEM, after the manifest, unless the input lies there, or is searched for pictures with it."""
    folder = os.path.expanduser(found.patterns[0])
    searched = found.kind == "folder"
    for name in (os.path.join("outputs", stem), os.path.join("outputs", f"{stem}-answers")):
        files = [folder] if searched else [file for pattern in found.patterns for file in glob.glob(pattern)[:1]]
        if not any(lies_in(file, name) for file in files) and not (searched and lies_in(name, folder)):
            return name
    return os.path.join(os.path.dirname(os.path.abspath(folder)), f"{stem}-answers")


def _free(name: str, looked: Looked) -> str:
    """``name``, or one like it that no kept column has."""
    return name if name not in looked.keep else _free(f"{name}_found", looked)


def _line(text: str, comment: str) -> str:
    text = text.replace("${", "$${")  # a name of the data's, not an environment variable
    return f"{text:<{_COMMENT - 1}} # {' '.join(comment.split())}"
